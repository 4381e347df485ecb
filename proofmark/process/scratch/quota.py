"""How much a process of others' code may keep in directories of its own: who watches over it looks now and then."""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

EVERY, SHARE, NAMELESS_SHARE = 1.0, 0.02, 0.002
"""Seconds between two looks; more where looking would take more than that share of the time. To look for files without
a name is to look at all processes."""

_GONE = " (deleted)"
"""How the kernel ends the path of a file whose name is gone."""

_MAPPED = re.compile(
    r"(?P<begin>[0-9a-f]+)-(?P<end>[0-9a-f]+) \S+ \S+ (?P<file>\S+ \d+) +(?P<path>/.*) \(deleted\)", re.ASCII
)
"""A line of /proc/<pid>/maps: proc_pid_maps(5)."""

LEAST = 4096
"""Bytes that any entry counts for: a disk can be filled with empty files too."""


RESERVE, BLAME = 512 << 20, 64 << 20
"""Bytes that are to stay free of a disk, for the logs of all; and how many a process must hold to be to blame."""


class Quota:
    """How much one process may keep on disk.

    Args:
        directories: its own; what is not there is empty.
        most: bytes that they may hold together.
        says: what says so.
    """

    def __init__(self, directories: Sequence[Path], most: float, says: str = "of --scratch-limit") -> None:
        self.directories, self._most, self._says = tuple(directories), most, says
        self._next = self._next_nameless = 0.0

    def exceeded(self, at_once: bool = False) -> str | None:
        """What is wrong, where they hold more; None if they don't, or it is too early to look again, unless
        `at_once`."""
        began = time.monotonic()
        if began < self._next and not at_once:
            return None
        size = held(self.directories, self._most)
        looked = time.monotonic()
        self._next = looked + max(EVERY, (looked - began) / SHARE)
        if looked >= self._next_nameless and size <= self._most:
            size += sum(_nameless(self.directories))
            ended = time.monotonic()
            self._next_nameless = ended + max(EVERY, (ended - looked) / NAMELESS_SHARE)
        if size <= self._most:
            return self._disk_full(size)
        if math.isinf(size):
            return "hid a folder in its own directory from the check of its size"
        return f"filled its own directory with more than the {self._most / (1 << 30):.3g} GiB {self._says}"

    def _disk_full(self, size: float) -> str | None:
        """What is wrong, where next to nothing is left of a disk, and they hold more than that."""
        free = min((_free(directory) for directory in self.directories), default=math.inf)
        if free >= RESERVE or size <= max(BLAME, free):
            return None
        return f"filled the disk: it holds {size / (1 << 30):.3g} GiB there, and {free / (1 << 20):.0f} MiB are left"


def _free(directory: Path) -> float:
    """Bytes of its disk, as if each entry that may still be made took its share; any number where it isn't there."""
    try:
        status = os.statvfs(directory)
    except OSError:
        return math.inf
    entries = status.f_favail / status.f_files if status.f_files else 1.0  # not every file system counts them
    return min(float(status.f_bavail), entries * status.f_blocks) * status.f_frsize


def held(directories: Sequence[Path], enough: float) -> float:
    """Bytes of all that lies below some directories, counted until there are `enough`. A hole in a file counts: who
    reads it all reads that too."""
    total = 0.0
    for size in (size for directory in directories for size in _sizes(directory)):
        total += size
        if total > enough:
            break
    return total


def _sizes(directory: Path) -> Iterator[float]:
    """The size of each entry. What goes meanwhile counts for nothing; what can't be looked into, or lies too deep for a
    path, counts as infinite."""
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
                    status = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                except FileNotFoundError:
                    continue
                except OSError:
                    yield math.inf
                    continue
                yield max(LEAST, status.st_size, status.st_blocks * 512)


def _nameless(directories: Sequence[Path]) -> Iterator[float]:
    """Of each file that was below the directories by its last name. Of processes that can't be looked into, none."""
    within = tuple(f"{os.path.realpath(directory)}/" for directory in directories)
    seen = set[tuple[int, int]]()
    for process in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            folder = f"/proc/{process}/fd"
            for descriptor in os.listdir(folder):
                with contextlib.suppress(OSError):
                    path = os.readlink(f"{folder}/{descriptor}")
                    if path.endswith(_GONE) and path.startswith(within):
                        status = os.stat(f"{folder}/{descriptor}")
                        if (file := (status.st_dev, status.st_ino)) not in seen:
                            seen.add(file)
                            yield status.st_blocks * 512
            yield from _mapped(process, within, seen)


def _mapped(process: str, within: tuple[str, ...], seen: set[tuple[int, int]]) -> Iterator[float]:
    """Of those that one process has mapped; how much of them it has is all that is known."""
    with open(f"/proc/{process}/maps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            if _GONE in line and (found := _MAPPED.match(line)) and found["path"].startswith(within):
                device, inode = found["file"].split()
                major, minor = (int(part, 16) for part in device.split(":"))
                if (file := (os.makedev(major, minor), int(inode))) not in seen:
                    yield int(found["end"], 16) - int(found["begin"], 16)
                    seen.add(file)
