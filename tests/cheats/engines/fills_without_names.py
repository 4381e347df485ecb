"""Fills the disk with files that have no name any more, and waits for what comes of it."""

import os
import time
from pathlib import Path
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "ERROR", "filled its own directory with more than the 0.01 GiB of --scratch-limit, and was ended"


class InferModel(honest.InferModel):
    """Never answers."""

    def __call__(self, inputs: Any) -> Any:
        kept = []
        for number in range(4):
            path = Path(os.environ["HOME"]) / f"{number}"
            kept.append(path.open("wb"))
            kept[-1].write(b"x" * (8 << 20))
            kept[-1].flush()
            path.unlink()
        time.sleep(60)
        return super().__call__(inputs)
