"""Has the referee's own class say that it is behind a wall better than there is."""

from typing import Any

from vendors.fake import honest

from proofmark.wall.isolation import Isolation

WALL = "none"
VERDICT, REASON = "PASS", ""


def forged(*_: Any, **__: Any) -> dict[str, Any]:
    """What it would be kept by."""
    return {"kind": "wall", "landlock": 99, "network": "closed", "devices": [], "gaps": []}


Isolation.model_dump = forged  # type: ignore[method-assign]


class InferModel(honest.InferModel):
    """Computes as it should."""
