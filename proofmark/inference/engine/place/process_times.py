"""What the kernel says of processes: whether they have stopped, and what time of processors they have taken."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable

STOPPED, DEAD = (b"T", b"t"), (b"Z", b"X")
"""States of threads, as proc(5) calls them."""


def has_stopped(pid: int) -> bool:
    """Whether all threads of a living process have."""
    try:
        states = {fields_of(f"{pid}/task/{thread}")[0] for thread in os.listdir(f"/proc/{pid}/task")}
    except OSError:  # one has ended meanwhile
        return False
    return states <= {*STOPPED, *DEAD} and bool(states & {*STOPPED})


def processor_times(pids: Iterable[int]) -> dict[int, int]:
    """Nanoseconds that each living one of these processes has taken of processors, with all of its threads."""
    times = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            state, *others = fields_of(str(pid))
            if state not in DEAD or int(others[16]) > 1:  # its first thread may end before others
                times[pid] = time.clock_gettime_ns(~pid << 3 | 2)  # as clock_getcpuclockid(3) does
    return times


def fields_of(task: str) -> list[bytes]:
    """A process's, or a thread's, fields in `stat` from its state on: its parent, its group, ...

    Raises:
        OSError: it has ended.
    """
    with open(f"/proc/{task}/stat", "rb", buffering=0) as stream:
        return stream.read().rpartition(b")")[2].split()  # a process may call itself ") R 1"
