"""The score of a search: pure functions of its trials, as the journal has them.

The original's score is operations over seconds, and its regulated score that times -ln(error) (arXiv 2008.07141).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from proofmark.automl.outcome.record import EpochRecord, Items, Mark, Score, TrialRecord

TRAINED, EVALUATED = 1_280_000, 50_000
"""Images that the original credits for each epoch, whatever was processed."""

MOST_MARKS = 10_000
"""What curves are drawn of; of more marks they are of every second one, or third."""

UNKNOWN = Items()
"""The items of a search whose best network was not judged (yet), and of older records."""

LEAST_ERROR = 1e-6
"""An error that is none is taken for this: no data set has so many images that it would be told from it."""


def score_of(trials: Sequence[TrialRecord], seconds: float, error: float | None, items: Items = UNKNOWN) -> Score:
    """The final score.

    Args:
        trials: all of them; of those that failed time and energy count.
        seconds: of the whole search, start-up and idle time included.
        error: of the best trial on data that none was chosen by, 0 to 1.
        items: that a finished epoch is of; where nobody knows, every epoch is taken for one.
    """
    earned = list(_earned(trials, items))
    flops = sum(trial.flops_of(epoch) for trial, epoch in earned)
    joules = [trial.energy_joules for trial in trials]
    unknown = next(filter(None, map(_energy_unknown, trials)), None)
    honest = flops / seconds if seconds > 0 and flops > 0 else None
    credited = sum(_credited(trial, epoch) for trial, epoch in earned)
    compatible = credited / seconds if credited and seconds > 0 else None
    return Score(
        honest=honest,
        regulated=regulated(honest, error),
        compatible=compatible,
        compatible_regulated=regulated(compatible, error),
        joules_per_teraflop=sum(filter(None, joules)) / (flops / 1e12) if trials and flops and not unknown else None,
        energy_reason=unknown or (None if trials and flops else "nothing was computed"),
        flops=flops,
        error=error,
    )


def regulated(score: float | None, error: float | None) -> float | None:
    """A score times -ln(error); None where one of them is unknown."""
    if score is None or error is None:
        return None
    return score * abs(math.log(max(error, LEAST_ERROR)))


def marks_of(
    trials: Sequence[TrialRecord], seconds: float, every: float, first: int, items: Items = UNKNOWN
) -> Iterator[Mark]:
    """The search at its marks, each `every` seconds from the `first` one on, and at its end.

    At a mark that counts which was evaluated until then: an epoch that is not over earns nothing.
    """
    done = sorted(_earned(trials, items), key=lambda pair: pair[1].ended)
    last = int(min(seconds / every, 1e15))
    apart = -(-(last - first + 1) // MOST_MARKS) or 1
    moments = [every * number for number in range(first, last + 1, max(1, apart))]
    if seconds > 0 and (not moments or moments[-1] < seconds):
        moments.append(seconds)
    position, flops, credited, best = 0, 0.0, 0, None
    for moment in moments:
        while position < len(done) and done[position][1].ended <= moment:
            trial, epoch = done[position]
            flops += trial.flops_of(epoch)
            credited += _credited(trial, epoch)
            if epoch.accuracy is not None and (best is None or epoch.accuracy > best):
                best = epoch.accuracy
            position += 1
        error = None if best is None else 1.0 - best
        score = flops / moment if flops else None
        compatible = credited / moment if credited else None
        yield Mark(
            seconds=moment,
            error=error,
            score=score,
            regulated=regulated(score, error),
            compatible=compatible,
            compatible_regulated=regulated(compatible, error),
        )


def _energy_unknown(trial: TrialRecord) -> str | None:
    """Why nobody knows all that a trial took; None where that is known."""
    if trial.energy_joules is None:
        return f"trial {trial.number}: {trial.energy_reason or 'no reading'}"
    if trial.attempts > 1:
        return f"trial {trial.number}: an earlier attempt ended with its driver, and its reading with it"
    return None


def _earned(trials: Sequence[TrialRecord], items: Items) -> Iterator[tuple[TrialRecord, EpochRecord]]:
    """All epochs that count towards the score, each with its trial."""
    return ((trial, epoch) for trial in trials if trial.earns for epoch in trial.finished_epochs(items))


def _credited(trial: TrialRecord, epoch: EpochRecord) -> int:
    """FLOPs of an epoch as AIPerf credits them: a fixed number of images for each epoch that was trained, by its
    formulas."""
    if not epoch.images:
        return 0
    return TRAINED * trial.compatible_training_flops + EVALUATED * trial.compatible_forward_flops
