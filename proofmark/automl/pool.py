"""Which finished trials a search builds on."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import islice

MOST = 150
"""Networks that the next ones are derived from, and that the surrogate is fitted to: its cost grows with their cube."""


def best_and_last(accuracies: Sequence[float], most: int = MOST) -> list[int]:
    """Which of networks are gone on from, by their places: the best half and the last ones, in their order."""
    if len(accuracies) <= most:
        return list(range(len(accuracies)))
    best = set(heapq.nsmallest(most // 2, range(len(accuracies)), key=lambda place: -accuracies[place]))
    others = (place for place in reversed(range(len(accuracies))) if place not in best)
    return sorted([*best, *islice(others, most - len(best))])
