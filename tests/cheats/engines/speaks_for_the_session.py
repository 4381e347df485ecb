"""Tells, into all that its parent's process writes to, of what only the session can tell: a run on another chip."""

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
        report = {"event": {"event": "run_begin", "chip": {"name": "a better one"}}}
        for descriptor in pipes():
            os.write(descriptor, (json.dumps(report) + "\n").encode())


def pipes() -> list[int]:
    """Those of the parent that can be opened here."""
    opened = []
    try:
        for link in Path(f"/proc/{os.getppid()}/fd").iterdir():
            if os.readlink(link).startswith("pipe:"):
                opened.append(os.open(link, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return opened
    return opened
