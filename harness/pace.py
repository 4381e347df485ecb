"""Whether one kind of call is really faster than another, said only when it is clear.

The 10 % by which a repeat may be faster is the bound of MLPerf's compliance test TEST04. A pace is held against an
engine only when its median was never near 1 and at least 23 of 32 pairs are beyond the bound (p = 0.01 for an engine
at the very bound, which none is), so that noise accuses nobody.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

FEWEST, MOST = 4, 32
"""Pairs of calls to compare: enough to clear, enough to accuse."""

PACE = 1.10
CLEAR = 1.05
"""Medians up to CLEAR end the test early; PACE is the bound itself."""

GRACE = 50e-6
"""Seconds by which calls may differ for reasons of the machine: a first touch of inputs, a scheduler's whim."""

ACCUSED = 23
"""Pairs out of MOST beyond the bound that make an accusation."""


@dataclass
class Paces:
    """Ratios of paired calls, and whether they are clear yet."""

    ratios: list[float] = field(default_factory=list)

    def add(self, slow: float, fast: float) -> None:
        """Compare two calls, in seconds."""
        self.ratios.append(slow / (fast + GRACE))

    @property
    def median(self) -> float:
        """The middle ratio."""
        return statistics.median(self.ratios)

    @property
    def clear(self) -> bool:
        """Whether enough pairs say that the bound is kept."""
        return len(self.ratios) >= FEWEST and self.median <= CLEAR

    @property
    def accused(self) -> bool:
        """Whether nearly all of many pairs lie beyond the bound."""
        return len(self.ratios) >= MOST and sum(ratio > PACE for ratio in self.ratios) >= ACCUSED
