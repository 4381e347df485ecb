"""Fills the disk from its own directory, and waits for what comes of it."""

import os
import time
from pathlib import Path

from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "filled its own directory with more than the 0.01 GiB of --scratch-limit, and was ended"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        for number in range(4):
            (Path(os.environ["HOME"]) / f"{number}").write_bytes(b"x" * (8 << 20))
        time.sleep(60)
