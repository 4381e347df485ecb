"""Kills the process that would judge it."""

import os
import signal
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "ERROR", "PermissionError: [Errno 1]"


class InferModel(honest.InferModel):
    """Never answers."""

    def __call__(self, inputs: Any) -> Any:
        os.kill(os.getppid(), signal.SIGKILL)
        return super().__call__(inputs)
