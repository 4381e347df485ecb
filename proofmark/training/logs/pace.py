"""Whether a training computes at one pace from its beginning to its end."""

from __future__ import annotations

import itertools

from proofmark.measuring.statistics import rate
from proofmark.record.parts import Rate
from proofmark.training.logs.rank_log import RankLog

PARTS, SHORTEST = 5, 1.0
"""In how many parts it is looked for, and the seconds that each must last."""


def pace_of(first: RankLog) -> Rate | None:
    """Samples over the seconds of rank 0's compute, by parts of the training that last about the same.

    From its first group of steps on, in which more is prepared than computed. None where the parts would be too short,
    or are of too few steps, for what they say to be more than chance; or where the rank's figures are none.
    """
    points = first.computed.kept()
    begun, until = (points[0][1], points[-1][1]) if points else (0.0, 0.0)
    if until - begun < PARTS * SHORTEST:
        return None
    ends = [begun + (until - begun) * part / PARTS for part in range(PARTS)]
    bounds = [next(point for point in points if point[1] >= end) for end in ends] + [points[-1]]
    parts = [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in itertools.pairwise(bounds)]
    if any(samples <= 0 or seconds < SHORTEST / 2 for samples, seconds in parts):
        return None
    return rate(*zip(*parts, strict=True))
