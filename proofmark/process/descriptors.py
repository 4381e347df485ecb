"""What a process has open."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Collection

OPEN = "/proc/self/fd"


def close_all_but(kept: Collection[int]) -> None:
    """Close what is open, before there is a thread that could open more.

    `os.closerange` would try every number that there may be, a billion in some containers, where Python was built
    without close_range(2): that takes a minute.
    """
    for number in map(int, os.listdir(OPEN)):
        if number not in kept:
            with contextlib.suppress(OSError):  # that of the listing is closed by now
                os.close(number)


def is_ready(descriptor: int, within: float) -> bool:
    """Whether there is something to be read from it, or comes within so many seconds. It may have any number:
    `select.select` takes none from 1024 on."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(within * 1000))
