"""Whether one kind of call is really faster than another, said only when it is clear.

The 10 % by which a repeat may be faster is the bound of MLPerf's compliance test TEST04. All pairs of calls count, by
the geometric mean of their ratios, so that an engine is held by what it gains over all and not by its middling call:
one that knows just under half of the data is found out. Noise meets either call of a pair as often, where what follows
what is drawn by chance, so a pace is held against an engine only where the same surplus over the bound, each pair's
turned round or left by the toss of a coin, would come once in ten thousand: a few calls that were interrupted accuse
nobody.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

FEWEST, MOST = 4, 32
"""Pairs of calls to compare: enough to clear, enough to accuse."""

PACE = 1.10
CLEAR = 1.05
"""Means up to CLEAR end the test early; PACE is the bound itself."""

GRACE = 50e-6
"""Seconds by which calls may differ for reasons of the machine: a first touch of inputs, a scheduler's whim."""

CHANCE, TOSSES = 0.0001, 20_000
"""Share of the tosses in which noise alone may do as much as is held against an engine."""


@dataclass
class Paces:
    """Ratios of paired calls, and whether they are clear yet."""

    ratios: list[float] = field(default_factory=list)

    def add(self, slow: float, fast: float) -> None:
        """Compare two calls, in seconds."""
        self.ratios.append(slow / (fast + GRACE))

    @property
    def mean(self) -> float:
        """The geometric mean of all ratios."""
        return statistics.geometric_mean(self.ratios)

    @property
    def clear(self) -> bool:
        """Whether enough pairs say that the bound is kept."""
        return len(self.ratios) >= FEWEST and self.mean <= CLEAR

    @property
    def accused(self) -> bool:
        """Whether many pairs lie beyond the bound, farther than by chance."""
        return len(self.ratios) >= MOST and self.mean > PACE and by_chance(self.ratios) < CHANCE


def by_chance(ratios: Sequence[float]) -> float:
    """How often noise that slows either call of a pair as often puts ratios as far beyond PACE: a sign-flip test.

    The coins fall the same way for the same ratios.
    """
    excess = [math.log(ratio / PACE) for ratio in ratios]
    total, coins = sum(excess), random.Random(0)  # noqa: S311 (no secret)
    tosses = (sum(each if coins.random() < 0.5 else -each for each in excess) for _ in range(TOSSES))
    return sum(toss >= total - 1e-9 for toss in tosses) / TOSSES
