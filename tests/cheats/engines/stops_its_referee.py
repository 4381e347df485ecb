"""Stops the process that holds the clock: what isn't counted takes no time."""

import os
import signal
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "ERROR", "PermissionError: [Errno 1]"


class InferModel(honest.InferModel):
    """Never answers."""

    def __call__(self, inputs: Any) -> Any:
        os.kill(os.getppid(), signal.SIGSTOP)
        return super().__call__(inputs)
