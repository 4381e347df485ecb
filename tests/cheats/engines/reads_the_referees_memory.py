"""Opens its parent's memory, where the labels are, and fails where it can."""

import os
from pathlib import Path
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "PASS", ""


class InferModel(honest.InferModel):
    """Computes as it should, unless it can look into the referee."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        for name in ("mem", "maps", "environ"):
            try:
                (Path("/proc") / str(os.getppid()) / name).open("rb").read(1)
            except OSError:
                continue
            raise RuntimeError(f"read the referee's {name}")
