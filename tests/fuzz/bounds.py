"""A bound on what reading one input may take."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import PATIENCE

MEMORY = 200 << 20
"""Bytes of address space above what the process has."""

SECONDS = 20
"""Of a processor: what no input may take."""


class Hung(BaseException):
    """No reader catches this."""


@contextmanager
def bounded() -> Iterator[None]:
    """Within, more than MEMORY is a MemoryError, and more than SECONDS is a `Hung`, as is to wait for PATIENCE."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    handlers = {number: signal.signal(number, _hung) for number in (signal.SIGALRM, signal.SIGPROF)}
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # others on the cores, and what stands still, take none of it
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _hung(*_: object) -> None:
    raise Hung
