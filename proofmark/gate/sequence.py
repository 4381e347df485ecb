"""How far a median is known after any number of pairs, whenever one looks.

Source: Howard, Ramdas, McAuliffe, Sekhon (2021), "Time-uniform, nonparametric, nonasymptotic confidence sequences",
Annals of Statistics 49(2): the two-sided beta-binomial mixture boundary, after Robbins (1970) and Ville (1939). With it
tested for each value that a median may have, a quantile is bounded, as in Howard and Ramdas (2022), "Sequential
estimation of quantiles with applications to A/B testing and best-arm identification", Bernoulli 28(3).

Nothing is asked of how values scatter: heavy tails count as one value each. What is asked is that each value lies
above the median as often as below it, whatever came before; a coin that says which of two comes first sees to that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache


def median_interval(values: Sequence[float], error: float) -> tuple[float, float]:
    """Between which of the `values` their distribution's median lies.

    The intervals after the first, the second, ... value all hold together with probability 1 - `error`, so that one
    may stop at whichever one likes. Infinite on both sides while there are too few values.

    Args:
        values: in any order.
        error: probability, in (0, 1), that an interval at any time does not hold the median.
    """
    ordered, skipped = sorted(values), _beyond(len(values), error)
    if not skipped:
        return -math.inf, math.inf
    return ordered[skipped - 1], ordered[-skipped]


@cache
def _beyond(count: int, error: float) -> int:
    """How many of `count` values must at least lie on either side of the median; 0 where nothing is too few."""
    least = 0
    while least <= count // 2 and _evidence(count, least) >= -math.log(error):
        least += 1
    return min(least, (count + 1) // 2)


def _evidence(count: int, below: int) -> float:
    """Log of the mixture's likelihood ratio against a fair coin, where `below` of `count` values lie on one side.

    The mixture is uniform over all coins: a martingale that starts at 1 if the coin is fair.
    """
    from scipy.special import betaln

    return float(betaln(below + 1, count - below + 1)) + count * math.log(2)
