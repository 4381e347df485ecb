"""Whether a training computes at one pace from its beginning to its end."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from proofmark.measuring.statistics import rate
from proofmark.record.parts import Rate
from proofmark.training.logs.ranks.rank_log import RankLog

Point = tuple[int, int, float]
"""Steps, samples and seconds of compute, up to there."""

PARTS, SHORTEST, FEWEST = 5, 1.0, 10
"""In how many parts it is looked for, and the seconds and steps that each must have."""


def pace_of(first: RankLog) -> Rate | None:
    """Samples over the seconds of rank 0's compute, by parts of the training that last about the same.

    From its first group of steps on, in which more is prepared than computed, and without the one that has the first
    short batch. None where the parts would be too short, of too few steps, or too unlike in length, for what they say
    to be more than chance; or where the rank's figures are none.
    """
    points = _of_known_sizes(first.computed.kept())
    begun, until = (points[0][2], points[-1][2]) if points else (0.0, 0.0)
    each = (until - begun) / PARTS
    if each < SHORTEST:
        return None
    ends = [begun + each * part for part in range(PARTS)]
    bounds = [next(point for point in points if point[2] >= end) for end in ends] + [points[-1]]
    parts = [*_between(bounds)]
    if any(steps < FEWEST or samples <= 0 or seconds < each / 2 for steps, samples, seconds in parts):
        return None
    return rate([samples for _, samples, _ in parts], [seconds for *_, seconds in parts])


def _of_known_sizes(points: Sequence[Point]) -> Sequence[Point]:
    """As if there were nothing between the two around the first short batch, an epoch's last: for its size all is
    prepared once more, and may be compiled for minutes."""
    groups = [*_between(points)]
    whole = max((samples / steps for steps, samples, _ in groups if steps > 0), default=0.0)
    short = next((at for at, (steps, samples, _) in enumerate(groups) if 0 < samples < whole * steps), None)
    if short is None:
        return points
    del groups[short]
    return [*itertools.accumulate([points[0], *groups], lambda at, on: (at[0] + on[0], at[1] + on[1], at[2] + on[2]))]


def _between(points: Iterable[Point]) -> Iterator[Point]:
    """Steps, samples and seconds from each to the next."""
    for at, to in itertools.pairwise(points):
        yield to[0] - at[0], to[1] - at[1], to[2] - at[2]
