"""What the parent of sessions does last, once for all that it forks: it reads what is installed, and has its memory in
huge pages.

pytest reads all that is installed anew for each plugin that a house names: half of a refused session's own time. And of
small pages each fork copies a list of 100,000, and clears it away at its end: 18 of 30 ms of processor time, several
times in a session.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
from collections.abc import Callable, Iterable
from functools import cached_property
from importlib.metadata import Distribution, EntryPoints, PackagePath, PathDistribution, distributions
from pathlib import Path
from typing import Any

HUGE = 2 << 20
"""Bytes of a page."""

MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25


class Known(PathDistribution):
    """A distribution whose files are not read twice."""

    @cached_property
    def entry_points(self) -> EntryPoints:  # type: ignore[override]
        return super().entry_points

    @cached_property
    def files(self) -> list[PackagePath] | None:  # type: ignore[override]
        return super().files


def _read() -> list[Known]:
    """All of them; the files too of those whose assertions pytest rewrites."""
    found = [Known(each._path) for each in distributions() if isinstance(each, PathDistribution)]
    for each in found:
        if any(entry.group == "pytest11" for entry in each.entry_points):
            len(each.files or ())
    return found


KNOWN = _read()


def remember(root: str) -> None:
    """In a session: all that is installed is that, and what lies in `root`."""
    importlib.metadata.distributions = _remembered(root)


def _remembered(root: str) -> Callable[..., Iterable[Distribution]]:
    def found(**context: Any) -> Iterable[Distribution]:
        return distributions(**context) if context else [*distributions(path=[root]), *KNOWN]

    return found


def _collapse() -> None:
    """Have what the heap and others hold in huge pages, where the kernel can (Linux 6.1)."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in Path("/proc/self/maps").read_text().splitlines():
        where, rights, _, _, _, *name = line.split(maxsplit=5)
        begin, end = (int(number, 16) for number in where.split("-"))
        begin, end = -(-begin // HUGE) * HUGE, end // HUGE * HUGE
        if begin < end and "w" in rights and name in ([], ["[heap]"]):
            advise(begin, end - begin, MADV_HUGEPAGE)
            advise(begin, end - begin, MADV_COLLAPSE)


with contextlib.suppress(OSError, AttributeError):
    _collapse()
