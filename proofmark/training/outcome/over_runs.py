"""One figure of several runs."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.measuring.statistics import rate
from proofmark.record.parts import Rate
from proofmark.training.outcome.record import Rates, SeedRun, TrainingRecord
from proofmark.training.outcome.shortfall import is_short


def measured(record: TrainingRecord) -> list[SeedRun]:
    """The runs that rates are of: those that came to their end, and of these the ones that reached the target, where
    one did. What a run has trained that missed it nobody has looked at: it is its ranks' word."""
    ended = [run for run in record.trainings if run.rates is not None and run.failure is None]
    return [run for run in ended if not is_short(record, run)] or ended


def rates_over(runs: Sequence[SeedRun]) -> dict[str, Rate]:
    """All samples over all seconds of runs that have rates: those rates that each of them has.

    A log of others may not say how many samples; its runs count alike.
    """
    found = {}
    for name in Rates.model_fields:
        known = [(run.samples or 1, each) for run in runs if (each := getattr(run.rates, name, None) or 0) > 0]
        if known and len(known) == len(runs):
            found[name] = rate([samples for samples, _ in known], [samples / each for samples, each in known])
    return found


def tokens_over(runs: Sequence[SeedRun]) -> float | None:
    """Tokens per item over runs, padding left out; None where one of them has no count."""
    known = [(run.samples or 0, run.tokens_per_item) for run in runs]
    counted = [samples * each for samples, each in known if each is not None]
    samples = sum(samples for samples, _ in known)
    return sum(counted) / samples if samples and len(counted) == len(known) else None


def olympic_mean(values: Sequence[float]) -> float:
    """The mean without the largest and the smallest from five values on; otherwise the plain mean.

    A run that missed its target took infinitely long.
    """
    kept = sorted(values)[1:-1] if len(values) >= 5 else values
    return sum(kept) / len(kept)
