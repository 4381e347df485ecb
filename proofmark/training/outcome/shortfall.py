"""Whether a run reached its targets, by what its ranks say and by what its weights have outside of them."""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.literal import digits_apart
from proofmark.rules.aims import Aim, wrong_side
from proofmark.training.outcome.checks import METRICS, ROUNDING
from proofmark.training.outcome.examined import Examination
from proofmark.training.outcome.record import SeedRun, TrainingRecord

MISSED = 3.0
"""Standard errors by which the metric of some of the samples must be below the target to be a miss."""


def is_short(record: TrainingRecord, run: SeedRun) -> bool:
    """Whether a run missed the target, by what its weights have where they were examined.

    Another processor rounds otherwise: up to ROUNDING samples below the target, or the share METRICS where the metric
    is no mean, is no miss; nor is, on some of the data, what MISSED standard errors may make up for.
    """
    if not run.converged or run.failure is not None:
        return True
    found = run.examination
    if found is None:
        return False
    best = {name: _at_best(record, name, aim, found) for name, aim in record.aims.items()}
    return bool(missed(record, best))


def _at_best(record: TrainingRecord, name: str, aim: Aim, found: Examination) -> float | None:
    """What a value may be for all that its examination tells."""
    each = found if name == record.metric else found.others.get(name)
    if each is None or each.metric is None:
        return None
    share = METRICS.get(record.precision, 0.0) * abs(each.metric)
    slack = (share if each.weight is None else ROUNDING / max(each.weight, 1.0)) + MISSED * each.error
    return each.metric + (slack if aim.better == "higher" else -slack)


def claimed(record: TrainingRecord, run: SeedRun) -> Mapping[str, float | None]:
    """What the ranks say that they reached."""
    if run.examination is None:
        return {record.metric: run.metric, **run.metrics}
    others = {name: each.claimed for name, each in run.examination.others.items()}
    return {record.metric: run.examination.claimed, **others}


def missed(record: TrainingRecord, values: Mapping[str, float | None]) -> list[str]:
    """Which of these are known, and have not reached their targets."""
    return [
        _off(name, aim, value)
        for name, aim in record.aims.items()
        if (value := values.get(name)) is not None and not aim.reached(value)
    ]


def _off(name: str, aim: Aim, value: float) -> str:
    digits = digits_apart(value, aim.target, 5, "f")
    return f"{name} {value:.{digits}f} is {wrong_side(aim.better)} the target {aim.target:.15g}"


def shortfall(record: TrainingRecord, run: SeedRun) -> str:
    """Why a run that is short is so."""
    if run.failure is not None:
        return run.failure.cause
    found = run.examination
    if run.converged and found and not found.whole and found.metric is not None:  # it was said to have the target
        seen = {record.metric: found.metric, **{name: each.metric for name, each in found.others.items()}}
        return f"on {found.samples} samples drawn, {below(record, seen, run.samples)}"
    return below(record, {record.metric: run.metric, **run.metrics}, run.samples)


def below(record: TrainingRecord, values: Mapping[str, float | None], samples: int | None) -> str:
    """How values fall short after so many samples."""
    headline = values[record.metric]
    if record.target is None or headline is None:
        return "it did not converge"
    shortfalls = missed(record, values) or [_off(record.metric, record.aims[record.metric], headline)]
    return f"{', '.join(shortfalls)} after {samples} samples"
