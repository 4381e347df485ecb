"""What the control groups of a process leave it of a machine: the least of all that enclose it, of either version.

A container's processors and memory are bounded so, and what asks the kernel for the machine's gets the host's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

MEMORY = (("memory.max", "memory.current", ""), ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"))
"""Of each version: files with the limit and with what is used, and how names begin in `memory.stat` of what is of all
groups below too."""


def quota_of_processors(root: Path = Path("/")) -> int | None:
    """Processors whose time this process and its neighbours have, a part of one as a whole; None without a bound."""
    return min((math.ceil(share) for group in _groups("cpu", root) for share in _shares(group)), default=None)


def memory_left(root: Path = Path("/")) -> int | None:
    """Bytes until the kernel ends processes to keep a bound; None without one."""
    return min((left for group in _groups("memory", root) for left in _left(group)), default=None)


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """Folders of this process's group and of all above it, as far as a container shows them."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        names, _, path = line.partition(":")[2].partition(":")
        if not names or controller in names.split(","):
            top = root / "sys/fs/cgroup" / (controller if names else "")
            own = top / path.lstrip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(top))


def _shares(group: Path) -> Iterator[float]:
    """Processors, by quota and period; without a bound these are `max` or -1."""
    second = _text(group / "cpu.max").split()
    first = [_text(group / name).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    for bound in (first, second):
        if len(bound) == 2 and all(map(str.isdecimal, bound)) and int(bound[1]):
            yield int(bound[0]) / int(bound[1])


def _left(group: Path) -> Iterator[int]:
    """Bytes to the limit. What files have of the memory is counted as used, and is there for whoever needs it."""
    for *files, whole in MEMORY:
        limit, used = (_text(group / name).strip() for name in files)
        if limit.isdecimal() and used.isdecimal():
            fields = dict(line.partition(" ")[::2] for line in _text(group / "memory.stat").splitlines())
            kept = sum(int(fields.get(f"{whole}{name}", 0)) for name in ("active_file", "inactive_file"))
            yield max(0, int(limit) - max(0, int(used) - kept))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
