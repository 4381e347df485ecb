"""Makes itself a namespace of users, in which it has every capability there is."""

import ctypes
import os
from pathlib import Path
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "PASS", ""
"""It is refused, and does nothing else."""

CLONE_NEWUSER = 0x10000000


class InferModel(honest.InferModel):
    """In a process that it forks: one with threads may not."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        says, told = os.pipe()
        if not os.fork():
            ctypes.CDLL(None).unshare(CLONE_NEWUSER)
            (mine,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
            os.write(told, mine.encode())
            os._exit(0)
        if int(os.read(says, 64).split()[-1], 16):
            raise RuntimeError("has capabilities")
        os.wait()
