"""How much a process of others' code may keep in directories of its own: who watches over it looks now and then."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

EVERY, SHARE = 1.0, 0.02
"""Seconds between two looks; more where looking would take more than that share of the time."""

LEAST = 4096
"""Bytes that any entry counts for: a disk can be filled with empty files too."""


class Quota:
    """Of one process.

    Args:
        directories: its own; what is not there is empty.
        most: bytes that they may hold together.
    """

    def __init__(self, directories: Sequence[Path], most: float) -> None:
        self._directories, self._most = tuple(directories), most
        self._next = 0.0

    def exceeded(self) -> str | None:
        """What is wrong, where they hold more; None if they don't, or it is too early to look again."""
        began = time.monotonic()
        if began < self._next:
            return None
        size = held(self._directories, self._most)
        ended = time.monotonic()
        self._next = ended + max(EVERY, (ended - began) / SHARE)
        if size <= self._most:
            return None
        if math.isinf(size):
            return "hid a folder in its own directory from whoever looks how much is there"
        return f"filled its own directory with more than the {self._most / (1 << 30):.3g} GiB of --own-directory"


def held(directories: Sequence[Path], enough: float) -> float:
    """Bytes on the disk of all that lies below some directories, counted until there are `enough`."""
    total = 0.0
    for size in (size for directory in directories for size in _sizes(directory)):
        total += size
        if total > enough:
            break
    return total


def _sizes(directory: Path) -> Iterator[float]:
    """Of each entry; what goes meanwhile counts for nothing, and a folder that can't be looked into for any size."""
    folders = [str(directory)]
    while folders:
        try:
            entries = os.scandir(folders.pop())
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            yield math.inf
            continue
        with entries:
            for entry in entries:
                try:
                    size = entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                except OSError:
                    continue
                yield max(LEAST, size)
