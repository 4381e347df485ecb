"""Ends, and leaves a fork of itself that holds the bell: who asks must not wait for that one."""

import os
import time
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "ERROR", "the engine's process ended with exit code 0"


class InferModel(honest.InferModel):
    """Never answers."""

    def __call__(self, inputs: Any) -> Any:
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)
