"""Leaves a daemon of a session and a group of its own, with an empty environment: nobody's mark is on it."""

import os
import sys
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "PASS", ""


class InferModel(honest.InferModel):
    """Computes as it should."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        if os.fork() == 0:
            os.setsid()
            os.chdir("/")
            if os.fork() == 0:
                os.setpgid(0, 0)
                program = "import time; time.sleep(1200)  # left by a cheat of the corpus"
                os.execve(sys.executable, [sys.executable, "-c", program], {})
            os._exit(0)
        os.wait()
