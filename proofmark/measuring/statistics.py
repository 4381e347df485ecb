"""Rates and percentiles that say no more than their sample supports."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, islice, takewhile

from proofmark.record.parts import Rate
from proofmark.record.policy import TAILS

CONFIDENCE = 0.99


def rate(items: Sequence[float], seconds: Sequence[float]) -> Rate:
    """Items per second of all rounds together, all items over all seconds, and the spread of the rounds' own rates.

    Never the mean of their rates: one lucky short round would count as much as a long one.

    Raises:
        ValueError: there are none, one took no time, or the rounds of one are not those of the other.
    """
    if len(items) != len(seconds) or not items:
        raise ValueError(f"{len(items)} rounds have items, {len(seconds)} have seconds")
    if not min(seconds) > 0:
        raise ValueError(f"a rate needs seconds above 0, found {min(seconds):g}")
    rates = [count / took for count, took in zip(items, seconds, strict=True)]
    return Rate(
        value=math.fsum(items) / math.fsum(seconds),
        stdev=statistics.stdev(rates) if len(rates) > 1 else None,
        min=min(rates),
        max=max(rates),
    )


@cache
def samples_needed(percentile: float, discarded: int = 1) -> int:
    """Smallest n at which `discarded` of n samples above a percentile is significant.

    Source: MLPerf LoadGen's early stopping: the smallest n with
    P[Binomial(n, 1 - p) <= t] <= 1 - c, for c = 0.99 and t = `discarded`. One discarded sample gives
    64 for p90 and 662 for p99.

    Args:
        percentile: in (0, 100), such as 99.
        discarded: t, how many samples may lie above.
    """
    tail = 1 - percentile / 100
    low, high = discarded + 1, discarded + 2
    while _binomial_cdf(high, tail, discarded) > 1 - CONFIDENCE:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if _binomial_cdf(middle, tail, discarded) <= 1 - CONFIDENCE:
            high = middle
        else:
            low = middle + 1
    return low


def _binomial_cdf(n: int, p: float, k: int) -> float:
    """P[Binomial(n, p) <= k]."""
    return math.fsum(islice(_binomial(n, p), k + 1))


def _binomial(n: int, p: float) -> Iterator[float]:
    """P[Binomial(n, p) = 0, 1, ...], by logarithms so that large n does not overflow."""
    log_p, log_q = math.log(p), math.log1p(-p)
    return (
        math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * log_p + (n - i) * log_q)
        for i in range(n + 1)
    )


def discardable(percentile: float, count: int) -> int:
    """The largest t for which `count` samples are enough (see `samples_needed`); 0 if there is none."""
    enough = takewhile(lambda so_far: so_far <= 1 - CONFIDENCE, accumulate(_binomial(count, 1 - percentile / 100)))
    return max(0, sum(1 for _ in enough) - 1)


def supported_percentiles(values: Sequence[float]) -> dict[str, float]:
    """The median and those of `TAILS` for which there are enough samples, named p50, p90, ...

    A tail percentile is LoadGen's conservative estimate: of the `discardable` worst samples all but one are left out,
    and the largest of the rest is it. So it is met with 99 % confidence.
    """
    ordered = sorted(values)
    count = len(ordered)
    found = {"p50": ordered[(count - 1) // 2]} if count >= samples_needed(50) else {}
    for percentile in TAILS:
        discarded = discardable(percentile, count)
        if discarded:
            found[f"p{percentile:g}"] = ordered[count - discarded]
    return found
