"""A bound on what reading one input may take."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = 200 << 20
"""Bytes of address space above what the process has."""

SECONDS = 20
"""What no input may hang for, on the busiest machine."""


class Hung(BaseException):
    """No reader catches this."""


@contextmanager
def bounded() -> Iterator[None]:
    """Within, more than MEMORY is a MemoryError, and more than SECONDS is a `Hung`."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, _hung)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGALRM, handler)


def _hung(*_: object) -> None:
    raise Hung
