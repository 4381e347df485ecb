"""Tells of two more rounds, a thousand times as fast, when its process exits, into all that its parent writes to."""

import atexit
import json
import os
from pathlib import Path
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "PASS", ""


class InferModel(honest.InferModel):
    """Computes as it should."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        atexit.register(tell)


def tell() -> None:
    a_round = {"event": "round", "of": "engine", "started": 1.79e9, "items": 100, "whole_ns": 8000, "accuracy": 1.0}
    for link in Path(f"/proc/{os.getppid()}/fd").iterdir():
        if os.readlink(link).startswith("pipe:"):
            descriptor = os.open(link, os.O_WRONLY | os.O_NONBLOCK)
            for number in (1, 2):
                report = {"event": {**a_round, "number": number, "batch_ns": [1000] * 7, "evaluation_ns": 10}}
                os.write(descriptor, (json.dumps(report) + "\n").encode())
