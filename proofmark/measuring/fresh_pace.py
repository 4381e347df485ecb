"""Whether fresh batches of the timed rounds took longer than the data's own, said only where it can't be chance.

Which places were fresh was drawn by chance, so an engine that makes no difference between them has times that could as
well have changed places, whatever noise is in them. It is accused where as many times, drawn blindly from all of
a round's, are as long in sum less than once in ten thousand draws.

All rounds count alike, each in units of its median, and no call counts as longer than two of those: what an engine
gained on the data it could pay back in one long call, or in one slow round, which would be an alibi for all others.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proofmark.measuring.pace import CHANCE, GRACE
from proofmark.monitoring.contention import CONTENDED
from proofmark.record.parts import Check

FRESH_PACE = 1.1
"""By how much fresh batches may take longer than the data's own: as in the honesty round."""

LONGEST = 2.0
"""Medians of its round that a call counts as at most."""

TOSSES = 20_000

NAME = "no slower when fresh"

MEANING = "in the timed rounds, inputs that nobody has seen take it longer"

Times = Sequence[float]


@dataclass(frozen=True)
class Round:
    """Seconds of the full batches of a timed round: fresh ones, and the data's own; and by how much fresh ones may take
    longer for reasons of the machine."""

    fresh: Times
    known: Times
    grace: float = GRACE


def fresh_pace(rounds: Sequence[Round]) -> Check | None:
    """The check over all rounds; None where none has both kinds."""
    both = [_levelled(each) for each in rounds if each.fresh and each.known]
    if not both:
        return None
    took = sum(sum(each.fresh) for each in both)
    usual = sum(len(each.fresh) * (sum(each.known) / len(each.known) + each.grace) for each in both)
    ratio = took / usual
    return Check(NAME, ratio <= FRESH_PACE or _by_chance(both, took) >= CHANCE, ratio, FRESH_PACE, MEANING)


def excused(check: Check, others: float) -> tuple[Check, list[str]]:
    """The check where nobody can tell why an engine is slow, and what disturbed it: no accusation, and no result.

    Args:
        check: of `fresh_pace`.
        others: share of the cores that other processes took in the busiest round.
    """
    if check.passed or others < CONTENDED:
        return check, []
    contention = f"other processes took {others:.0%} of the cores"
    what = f"{contention}, so nobody is accused of this: {check.meaning} ({check.figure:.3g} times)"
    return replace(check, passed=True, bound=None, meaning=f"no bound holds: {contention}"), [what]


def _levelled(timed: Round) -> Round:
    """A round in units of its median, the grace included, lest that be nothing beside what a quick call takes."""
    unit = statistics.median([*timed.fresh, *timed.known]) + timed.grace
    fresh, known = ([min(took / unit, LONGEST) for took in times] for times in (timed.fresh, timed.known))
    return Round(fresh, known, timed.grace / unit)


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
