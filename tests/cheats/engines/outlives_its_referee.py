"""Undoes all by which it would end with its referee, takes the socket along into another program, and has its referee
killed: so does a fork of its."""

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "ERROR", "filled its own directory with more than the 0.01 GiB of --scratch-limit, and was ended"


class InferModel(honest.InferModel):
    """Never answers."""

    def __call__(self, inputs: Any) -> Any:
        ctypes.CDLL(None).prctl(1, 0)  # PR_SET_PDEATHSIG
        for number in range(4):
            (Path(os.environ["HOME"]) / f"{number}").write_bytes(b"x" * (8 << 20))
        for descriptor in range(3, 64):
            if os.path.exists(f"/proc/self/fd/{descriptor}"):
                os.set_inheritable(descriptor, True)
        os.fork()
        program = "import time; time.sleep(600)  # left by a cheat of the corpus"
        os.execve(sys.executable, [sys.executable, "-c", program], {})
