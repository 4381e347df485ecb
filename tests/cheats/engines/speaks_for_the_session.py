"""Tells over the referee's pipe of what only the session can tell: that a run began, on another chip."""

import json
import os
import sys
from typing import Any

from vendors.fake import honest

VERDICT, TOLD = "ERROR", "run_begin is no event of a case's process"


class InferModel(honest.InferModel):
    """Computes as it should."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        told = {"event": {"event": "run_begin", "chip": {"name": "a better one"}}}
        os.write(int(sys.argv[1]), (json.dumps(told) + "\n").encode())
