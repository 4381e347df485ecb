"""A fixed piece of work beside what is timed: where it takes longer than before, the machine has become another one.

The host of a virtual machine moves its processors about: two of them share a core, or no longer share a cache. None of
that shows as time that others took. A small product of matrices on all cores at once, over before it has left the
caches, waits for its slowest thread as an engine does: on a machine of two processors it fell to 0.63 to 0.82 of its
speed whenever a small model's engine fell to 0.85, for 10 to 30 s at a time, and correlated with it by 0.91.
"""

from __future__ import annotations

import statistics
import time

LOOKS = 5
"""How often it is looked at; the median counts, since a look that others broke into says nothing."""

LOOK = 0.02
"""Seconds that a look lasts."""

LEAST_SECONDS = 0.5
"""Of a round that is worth looking beside: a shorter one takes less than the looks."""

EDGE = 768
ROWS_PER_THREAD = 64


class Yardstick:
    """The machine's own speed, as a share of the best that it has had since this was made."""

    def __init__(self) -> None:
        self._best = 0.0

    def share(self) -> float:
        """Of the best, 0 to 1."""
        found = statistics.median(self._products() for _ in range(LOOKS))
        self._best = max(self._best, found)
        return found / self._best

    def _products(self) -> float:
        """Products per second, of one at least."""
        import torch

        rows = torch.ones(ROWS_PER_THREAD * torch.get_num_threads(), EDGE)
        square = torch.ones(EDGE, EDGE)
        begun, count = time.perf_counter(), 0
        with torch.inference_mode():
            while not count or time.perf_counter() < begun + LOOK:
                torch.mm(rows, square)
                count += 1
        return count / (time.perf_counter() - begun)
