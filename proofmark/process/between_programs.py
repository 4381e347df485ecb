"""What passes with a process and is seen for a moment only: it becomes another program, or its threads end.

A part of the far end too, so that it needs nothing but Python.
"""

from __future__ import annotations

import time
from pathlib import Path

_FLAGS, _ENVIRONMENT_ENDS = 6, 48
"""Which fields of /proc/<pid>/stat after the name they are."""

_EXITING, _KERNELS_OWN = 0x4, 0x200000
"""PF_EXITING and PF_KTHREAD of the kernel's sched.h."""


def becomes_another(stat: bytes) -> bool:
    """Whether a process, by its /proc/<pid>/stat, is between two programs: it has left the one, and does not have the
    environment of the other yet, so that nobody can tell what it bears. On a busy machine that may last."""
    fields = _fields(stat)
    if len(fields) <= _ENVIRONMENT_ENDS or int(fields[_FLAGS]) & (_EXITING | _KERNELS_OWN):
        return False
    return int(fields[_ENVIRONMENT_ENDS]) == 0


def wait_between_programs(pid: int, deadline: float) -> bool:
    """Wait until a process that shows no environment has one, or is gone, but not beyond `deadline` on the monotonic
    clock; whether it had to be waited for."""
    waited = False
    while _is_between(pid) and time.monotonic() < deadline:
        waited = True
        time.sleep(0.001)
    return waited


def _is_between(pid: int) -> bool:
    try:
        return becomes_another(Path(f"/proc/{pid}/stat").read_bytes())
    except OSError:  # gone, or no Linux
        return False


def is_ending(stat: bytes) -> bool:
    """Whether a thread, by its own stat, has begun to end: it runs none of its program's code any more."""
    return bool(int(_fields(stat)[_FLAGS]) & _EXITING)


def _fields(stat: bytes) -> list[bytes]:
    return stat.rpartition(b")")[2].split()  # a process may call itself ") R 1"
