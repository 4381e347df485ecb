"""Has the kernel keep all others from files that it may read: who opens one, another's session say, waits until the
lease is broken, 45 seconds later, file by file."""

import fcntl
import os
import signal
from pathlib import Path
from typing import Any

from vendors.fake import honest

import proofmark

VERDICT, REASON = "PASS", ""
"""It is refused, and does nothing else."""


class InferModel(honest.InferModel):
    """Of the suite's own modules: those that nobody has open."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # somebody wants one back
        self._held = [held for path in Path(proofmark.__path__[0]).rglob("*.py") if (held := self._leased(path)) > 0]
        if self._held:
            raise RuntimeError(f"holds {len(self._held)} of the suite's files")

    @staticmethod
    def _leased(path: Path) -> int:
        opened = os.open(path, os.O_RDONLY)
        try:
            fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            os.close(opened)
            return 0
        return opened
