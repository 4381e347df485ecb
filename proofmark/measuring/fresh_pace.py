"""Whether fresh batches of the timed rounds took longer than the data's own, said only where it can't be chance.

Which places were fresh was drawn by chance, so an engine that makes no difference between them has times that could as
well have changed places, whatever noise is in them. It is accused where as many times, drawn blindly from all of
a round's, are as long in sum less than once in ten thousand draws. Rounds are held by their sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofmark.measuring.pace import CHANCE, GRACE
from proofmark.record.parts import Check

FRESH_PACE = 1.1
"""By how much fresh batches may take longer than the data's own: as in the honesty round."""

TOSSES = 20_000

NAME = "no slower when fresh"


@dataclass(frozen=True)
class Round:
    """Seconds of the full batches of a timed round."""

    fresh: Sequence[float]
    known: Sequence[float]


def fresh_pace(rounds: Sequence[Round]) -> Check | None:
    """The check over all rounds; None where none has both kinds."""
    whole = [each for each in rounds if each.fresh and each.known]
    if not whole:
        return None
    took = sum(sum(each.fresh) for each in whole)
    expected = sum(len(each.fresh) * (sum(each.known) / len(each.known) + GRACE) for each in whole)
    ratio = took / expected
    passed = ratio <= FRESH_PACE or _by_chance(whole, took) >= CHANCE
    return Check(NAME, passed, ratio, FRESH_PACE, "in the timed rounds, inputs that nobody has seen take it longer")


def _by_chance(rounds: Sequence[Round], took: float) -> float:
    """How often times drawn blindly are as long. The draws fall the same way for the same times."""
    import numpy as np

    chance = np.random.default_rng(0)
    total = np.zeros(TOSSES)
    for each in rounds:
        pool = np.array([*each.fresh, *each.known])
        for _ in each.fresh:
            total += chance.choice(pool, TOSSES)
    return float((total >= took * (1 - 1e-9)).mean())
