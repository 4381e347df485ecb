"""Whether fresh batches of the timed rounds took longer than the data's own, said only where it can't be chance.

Which places were fresh was drawn by chance, so an engine that makes no difference between them has times that could as
well have changed places, whatever noise is in them. It is accused where as many times, drawn blindly from all of
a round's, are as long in sum less than once in ten thousand draws. Rounds are held by their sums.

Those next to a fresh one are no measure of the data's own: the referee's work lies right before them. But no two fresh
ones are next to each other, so an engine knows that they aren't fresh: they must not be quicker than others.

Of few batches chance can't be told apart: an engine that takes no time for each fifth of those that it has seen has
nine fresh ones that are all slow in one of seven measurements by chance. Where most of the fresh ones are slow, or most
of those next to one quick, nobody is accused, and there is no result.
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

TOSSES = 20_000

NAME = "no slower when fresh"

FEWEST = 6
"""Batches of which most say something, as the fresh ones of two rounds: of fewer two that were interrupted are most."""


MEANINGS = {
    "fresh": "in the timed rounds, inputs that nobody has seen take it longer",
    "before": "in the timed rounds, what comes right before inputs that nobody has seen takes it less time than others",
    "after": "in the timed rounds, what comes right after inputs that nobody has seen takes it less time than others",
}

Times = Sequence[float]


@dataclass(frozen=True)
class Round:
    """Seconds of the full batches of a timed round: fresh ones, and the data's own, those next to a fresh one apart."""

    fresh: Times
    known: Times
    before: Times = ()
    after: Times = ()


def fresh_pace(rounds: Sequence[Round]) -> Check | None:
    """The check over all rounds, by the worst of its figures; None where none has both kinds."""
    if not any(each.fresh and each.known for each in rounds):
        return None
    checks = []
    for kind, meaning in MEANINGS.items():
        if pairs := _pairs(rounds, kind):
            longer, took = kind == "fresh", sum(sum(few) for few, _ in pairs)
            ratio = _ratio(pairs, took, longer)
            passed = ratio <= FRESH_PACE or _by_chance(pairs, took, longer) >= CHANCE
            checks.append(Check(NAME, passed, ratio, FRESH_PACE, meaning))
    return max(checks, key=lambda check: (not check.passed, check.figure))


def doubts(rounds: Sequence[Round]) -> list[str]:
    """What disturbs where nobody is accused: what most batches of a kind show, too few of them to tell.

    Fresh ones are held against the mean of the data's, of which some may be known by heart; those next to one against
    their median, since a few that were interrupted make a mean longer.
    """
    found = []
    for kind, meaning in MEANINGS.items():
        longer, ratios = kind == "fresh", list[float]()
        for times, known in _pairs(rounds, kind):
            usual = (statistics.mean if longer else statistics.median)(known)
            ratios += [took / (usual + GRACE) if longer else usual / (took + GRACE) for took in times]
        if len(ratios) >= FEWEST and (ratio := statistics.median(ratios)) > FRESH_PACE:
            found.append(f"{meaning} (most of it {ratio:.3g} times), too seldom to tell that from chance")
    return found


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


def _pairs(rounds: Sequence[Round], kind: str) -> list[tuple[Times, Times]]:
    """The times of a kind and the data's, of each round that has both."""
    return [(times, each.known) for each in rounds if (times := getattr(each, kind)) and each.known]


def _ratio(pairs: Sequence[tuple[Times, Times]], took: float, longer: bool) -> float:
    """How much longer, or quicker, the few times of each round are than its many."""
    usual = sum(len(few) * sum(many) / len(many) for few, many in pairs)
    grace = GRACE * sum(len(few) for few, _ in pairs)
    return took / (usual + grace) if longer else usual / (took + grace)


def _by_chance(pairs: Sequence[tuple[Times, Times]], took: float, longer: bool) -> float:
    """How often times drawn blindly are as long, or as short. The draws fall the same way for the same times."""
    import numpy as np

    chance = np.random.default_rng(0)
    total = np.zeros(TOSSES)
    for few, many in pairs:
        pool = np.array([*few, *many])
        for _ in few:
            total += chance.choice(pool, TOSSES)
    return float((total >= took * (1 - 1e-9) if longer else total <= took * (1 + 1e-9)).mean())
