"""How soon a run may converge, by reference runs that the case has recorded."""

from __future__ import annotations

import math
from collections.abc import Sequence

from proofmark.training.outcome.record import TrainingRecord

CONFIDENCE = 0.95
"""One-sided, that a run which converged sooner than this bound is no run of the reference's kind."""


def held_to(record: TrainingRecord) -> tuple[int, list[int], float] | None:
    """The reference runs that a run must not be sooner than, by their global batch, and the fewest samples that they
    allow; None where the case has none.

    A vendor may choose another batch than theirs. With a larger one no fewer samples are needed, and with a smaller one
    no fewer steps: so references of every batch say something of this one, and those that say most are taken.
    """
    size = record.global_batch_size or 0
    items = record.dataset.items if record.dataset else None
    slack = max(_interval(record), min(size, items or size))
    found = []
    for key, samples in (record.config.get("references") or {}).items():
        if samples and key.isdecimal() and int(key):
            found.append((soonest(samples, slack) * min(1.0, size / int(key)), int(key), list(samples)))
    if not found:
        return None
    floor, batch, of = max(found)
    return batch, of, floor


def soonest(samples: Sequence[int], interval: float) -> float:
    """The fewest samples in which one more run of the reference's kind may converge.

    The lower end of a one-sided prediction interval over the reference runs (Student's t), but always at least one
    evaluation interval below their mean: references that agree exactly must not forbid the next step.
    """
    mean, count = sum(samples) / len(samples), len(samples)
    slack = interval
    if count > 1:
        from scipy.stats import t

        stdev = math.sqrt(sum((value - mean) ** 2 for value in samples) / (count - 1))
        slack = max(interval, float(t.ppf(CONFIDENCE, count - 1)) * stdev * math.sqrt(1 + 1 / count))
    return mean - slack


def _interval(record: TrainingRecord) -> float:
    """Samples between two evaluations."""
    every = record.config.get("eval_interval_samples")
    items = record.dataset.items if record.dataset else None
    return float(every or items or 0)
