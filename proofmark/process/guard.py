"""A process beside one that runs others' code, which ends it with its parent, and when it keeps more than it may."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import tempfile
import time
from pathlib import Path

from proofmark.process.descriptors import close_all_but
from proofmark.process.lifetime import MARK, end_marked
from proofmark.process.scratch.quota import EVERY, Quota
from proofmark.process.scratch.temporary import remove_own_temporary_directory

MOST = 4 << 30
"""Bytes that it may keep: it says who it is, or what it reads, and leaves nothing."""


def guard(patience: float = 0.0) -> None:
    """Fork it, before there is any thread, a wall or others' code, which can't hold it up, nor end it from behind one.

    This process leads its group, and its standard input ends with its parent. What it leaves then is removed.

    Args:
        patience: seconds that this process gets to end by itself when its parent has ended, or closes that.
    """
    guarded = os.getpid()
    if os.fork() == 0:
        try:
            _guard(guarded, patience)
        finally:
            os._exit(0)


def _guard(guarded: int, patience: float) -> None:
    os.setsid()
    close_all_but((0, 1, 2))
    quota = Quota([Path(tempfile.gettempdir())], MOST, "that it may keep")
    poll = select.poll()
    poll.register(sys.stdin.fileno(), 0)  # its end alone: what is read there is not for this process
    full = None
    while not poll.poll(EVERY * 1000) and not (full := quota.exceeded()):
        if os.getppid() != guarded:  # it has ended: its parent clears up behind it
            return
    if full:
        os.write(sys.stderr.fileno(), f"it {full}, and was ended\n".encode())
    else:
        deadline = time.monotonic() + patience
        while os.getppid() == guarded and time.monotonic() < deadline:
            time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(guarded, signal.SIGKILL)
    end_marked(os.environ.get(MARK, ""))
    remove_own_temporary_directory()
