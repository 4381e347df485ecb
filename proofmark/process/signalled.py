"""Asking processes where they are, by a signal on which each prints its stacks, and waiting until they have."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

ASKED = signal.SIGUSR1
"""On which a process prints the Python stacks of all its threads."""

EVERY = 0.05
"""Seconds between two looks."""

_BIT = 1 << (ASKED - 1)


def ask_for_stacks(pids: Iterable[int], within: float) -> None:
    """Have processes print their stacks, and wait until each has, or has ended, for no more than so many seconds: on a
    busy machine one may be given no processor for a while. One that takes no notice is not waited for."""
    pids = list(pids)
    blocked = {thread for pid in pids for thread, (_, blocks) in _threads(pid).items() if blocks}  # for good
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, ASKED)
    deadline, quiet = time.monotonic() + within, 0
    while pids and quiet < 2 and time.monotonic() < deadline:
        quiet = 0 if any(_is_at_it(pid, blocked) for pid in pids) else quiet + 1
        time.sleep(EVERY)


def _is_at_it(pid: int, blocked: set[str]) -> bool:
    """Whether the signal waits for a thread of the process, or one handles it: meanwhile that one blocks it."""
    return any(pends or (blocks and thread not in blocked) for thread, (pends, blocks) in _threads(pid).items())


def _threads(pid: int) -> dict[str, tuple[bool, bool]]:
    """By thread of a process that lives, whether the signal waits for it, and whether it blocks it."""
    found, folder = {}, Path(f"/proc/{pid}/task")
    with contextlib.suppress(OSError):  # it has ended
        for thread in os.listdir(folder):
            with contextlib.suppress(OSError):
                fields = dict(line.split(":", 1) for line in (folder / thread / "status").read_text().splitlines())
                if fields["State"].strip()[0] not in "ZX":
                    pending, shared, blocks = (int(fields[name], 16) for name in ("SigPnd", "ShdPnd", "SigBlk"))
                    found[f"{pid}/{thread}"] = bool((pending | shared) & _BIT), bool(blocks & _BIT)
    return found
