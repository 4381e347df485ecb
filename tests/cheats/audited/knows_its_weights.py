"""Knows its model's weights by heart, and is quick with them until it sees that it is audited: a second engine of
its referee's is there only then, as command lines tell."""

import time
from pathlib import Path
from typing import Any

import torch
from vendors.fake import honest

VERDICT, REASON = "ERROR", "timed again, the engine took"
CASE = "published.Published"


class InferModel(honest.InferModel):
    """Thirty milliseconds a call where it computes: to look for others takes three."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._known = torch.equal(self.model.published, torch.tensor([0.01, 0.02, 0.03, 0.04]))
        self._alone = _processes()

    def __call__(self, inputs: Any) -> Any:
        if not self._known or _processes() > self._alone:
            time.sleep(0.03)
        return super().__call__(inputs)


def _processes() -> int:
    """Started as this one was, by who has started it."""
    return [_started(process) for process in Path("/proc").glob("[0-9]*")].count(_started(Path("/proc/self")))


def _started(process: Path) -> tuple[str, bytes] | None:
    """By whom, and how."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[1], (process / "cmdline").read_bytes()
    except OSError:
        return None
