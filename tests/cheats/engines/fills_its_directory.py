"""Fills the disk from its own directory, and waits for what comes of it."""

import os
import time
from pathlib import Path
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "ERROR", "filled its own directory with more than the 0.01 GiB of --scratch-limit, and was ended"


class InferModel(honest.InferModel):
    """Never answers."""

    def __call__(self, inputs: Any) -> Any:
        for number in range(4):
            (Path(os.environ["HOME"]) / f"{number}").write_bytes(b"x" * (8 << 20))
        time.sleep(60)
        return super().__call__(inputs)
