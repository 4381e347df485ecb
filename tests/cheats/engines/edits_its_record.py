"""Leaves a daemon with an empty environment behind, which edits the case's record when that is there."""

import os
import sys
from pathlib import Path
from typing import Any

from vendors.fake import honest

WALL = "none"
VERDICT, REASON = "PASS", ""
SESSION = "inference/edits_its_record/record.json: it was changed by somebody else than the session"

DAEMON = """
import pathlib, sys, time
record, end = pathlib.Path(sys.argv[1]), time.monotonic() + 600
while not record.exists() and time.monotonic() < end:
    time.sleep(0.01)
record.write_text(record.read_text().replace('"accuracy"', '"Accuracy"', 1))
"""


class InferModel(honest.InferModel):
    """Computes as it should."""

    def __init__(self, config: Any, *given: Any) -> None:
        super().__init__(config, *given)
        record = Path(config.host.artifact_dir).parent / "record.json"
        if os.fork() == 0:
            os.setsid()
            os.chdir("/")
            if os.fork() == 0:
                os.execve(sys.executable, [sys.executable, "-c", DAEMON, str(record)], {})
            os._exit(0)
        os.wait()
