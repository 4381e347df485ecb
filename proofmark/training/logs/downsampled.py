"""Series of any length in a record of bounded length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

POINTS = 512
"""Half of how many entries are kept at most."""

T = TypeVar("T")


class Downsampled(Generic[T]):
    """A series, halved to every second entry whenever there are too many. The first and the last are always kept."""

    def __init__(self) -> None:
        self._kept: list[T] = []
        self._stride, self._count = 1, 0
        self._last: Sequence[T] = ()

    def extend(self, entries: Sequence[T]) -> None:
        """The next entries."""
        self._kept += entries[-self._count % self._stride :: self._stride]
        self._count += len(entries)
        self._last = entries[-1:] or self._last
        while len(self._kept) > 2 * POINTS:
            self._kept = self._kept[::2]
            self._stride *= 2

    def kept(self) -> tuple[T, ...]:
        """At most 2 * POINTS + 1 of them, in their order."""
        missing = self._last if (self._count - 1) % self._stride else ()
        return (*self._kept, *missing)
