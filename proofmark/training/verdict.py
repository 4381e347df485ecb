"""The verdict on a training record: what a training adds to the stages of every suite."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from proofmark.record.parts import Verdict, VerdictKind
from proofmark.training.checks import required
from proofmark.training.record import Rates, SeedRun, TrainingRecord
from proofmark.verdict import engine
from proofmark.verdict.noise import bound_of, contention_of
from proofmark.verdict.stages import (
    Stage,
    damaged_lines,
    disturbances,
    impossible_utilisation,
    missing_identity,
    missing_utilisation,
    parts_left_out,
    wrong_flops,
)

ROUNDING = 2
"""Samples by which two processors may differ in a metric of the same weights."""

MISSED = 3.0
"""Standard errors by which the metric of some of the samples must be below the target to be a miss."""

CONFIDENCE = 0.95
"""One-sided, that a run which converged sooner than this bound is no run of the reference's kind."""


def judge(record: TrainingRecord) -> Verdict:
    """Judge a training."""
    return engine.judge(record, stages(record))


def stages(record: TrainingRecord) -> Iterator[Stage]:
    """After legality: whether it could run and did, then honesty, then the target, then what disturbed it.

    A training that was not the case's has no figures that could be missing, nor a target to miss.
    """
    yield VerdictKind.UNSUPPORTED, [record.unsupported] if record.unsupported else []
    yield VerdictKind.ERROR, _failures(record)
    yield VerdictKind.INSUFFICIENT, parts_left_out(record)
    yield VerdictKind.FAIL_HONESTY, _dishonesty(record)
    yield VerdictKind.ERROR, [*_missing_figures(record), *_impossible_figures(record)]
    yield VerdictKind.FAIL_ACCURACY, [*_shortfalls(record), *_missed_instances(record)]
    yield VerdictKind.INSUFFICIENT, ["read from a log: Proofmark has not measured it"] if record.read_from else []
    yield VerdictKind.INSUFFICIENT, _too_few(record)
    disturbed = [*_untrained(record), *_too_fast(record), *_disturbances(record), *_contention(record)]
    yield VerdictKind.AMBIGUOUS, disturbed


def _named(record: TrainingRecord, run: SeedRun) -> str:
    return f"seed {run.seed}: " if record.repeats > 1 else ""


def _trained(record: TrainingRecord) -> Iterator[tuple[str, SeedRun]]:
    """What each training's reasons begin with, and it: a run, and each further server of its, that trained it too."""
    for run in record.runs:
        yield _named(record, run), run
        yield from _further(record, run)


def _further(record: TrainingRecord, run: SeedRun) -> list[tuple[str, SeedRun]]:
    return [(f"{_named(record, run)}server {number}: ", server) for number, server in enumerate(run.servers, 1)]


def _failures(record: TrainingRecord) -> list[str]:
    reasons = [
        f"{_named(record, run)}{cause}"
        for run in record.runs
        if run.failure is not None and not run.failure.diverged
        for cause in run.failure.cause.splitlines()
    ]
    return [f"interrupted in {record.interrupted}"] if record.interrupted else reasons


def _dishonesty(record: TrainingRecord) -> list[str]:
    """What of a run shows that it was not the case that was trained, or not in the time that it says."""
    return [f"{name}{check.meaning}" for name, run in _trained(record) for check in run.checks if not check.passed]


def _missing_figures(record: TrainingRecord) -> list[str]:
    reasons = []
    if len(record.runs) != record.repeats:
        reasons.append(f"{len(record.runs)} of {record.repeats} runs are in the record")
    for name, run in _trained(record):
        missing = _missing_in_log(run) if record.read_from else _missing_in_run(record, run)
        reasons += [f"{name}{what}" for what in missing]
    if not record.ended:
        reasons.append("the event log has no end: whoever wrote it was killed before")
    reasons += damaged_lines(record, "the event logs")
    return reasons if record.read_from else reasons + _missing_of_task(record)


def _missing_of_task(record: TrainingRecord) -> list[str]:
    """What makes it a training of this case: its target, its scale, its data, weights and FLOPs."""
    reasons = missing_identity(record.dataset, record.weights, weights_loaded=record.weights_given)
    if record.target is None:
        reasons.append("the record has no target")
    if record.world is None:
        reasons.append("the record does not say how many processes there were")
    if any(run.rates for run in record.runs):
        reasons += missing_utilisation(record.flops, record.utilisation, record.chip)
    return reasons


def _missing_in_run(record: TrainingRecord, run: SeedRun) -> list[str]:
    """Of a run that Proofmark measured; one whose loss was no number any more came to no figures."""
    if run.failure is not None:
        return []
    reasons = []
    if run.instances is not None and len(run.instances.accuracies) != 1 + len(run.servers):
        reasons.append(f"of {len(run.instances.accuracies)} servers {1 + len(run.servers)} left their logs")
    if run.metric is None or run.converged is None:
        reasons.append(f"the last evaluation has no {record.metric}")
    elif run.converged and run.seconds_to_target is None:
        reasons.append("it is said to have converged, but no evaluation says when")
    if run.rates is None or run.rates.no_eval is None or run.rates.pure_compute is None:
        reasons.append("a throughput is missing" if run.rates else "nothing was measured")
    if run.contention is None:
        reasons.append("nothing says what else its machines did (contention)")
    measured = [rank for rank in run.ranks if rank.compute_seconds is not None]
    if record.world is not None and [rank.rank for rank in measured] != list(range(record.world)):
        reasons.append(f"{len({rank.rank for rank in measured})} of {record.world} ranks left their figures")
    broken = [str(rank.rank) for rank in measured if rank.steps is None or rank.steps != run.steps]
    if broken:
        reasons.append(f"the log of rank {', '.join(broken[:16])} has no end, or another than rank 0's")
    if run.examination and run.examination.reason:
        reasons.append(f"its weights were not evaluated outside the ranks: {run.examination.reason}")
    resumed = run.resumed_from is not None
    needed = required(bool(record.adapted), bool(run.converged), record.audited, resumed)
    missing = needed - {check.name for check in run.checks}
    return reasons + [f"the honesty check '{name}' is missing" for name in sorted(missing)]


def _missing_in_log(run: SeedRun) -> list[str]:
    """What a log of others must say, if it is to be believed at all: they have no ranks' figures, nor all rates."""
    if run.converged is None:
        return ["its log does not say whether it converged"]
    return ["its log does not say how well the model does"] if run.converged and run.metric is None else []


def _impossible_figures(record: TrainingRecord) -> list[str]:
    reasons = []
    for name, run in _trained(record):
        known = run.rates.model_dump(exclude_none=True) if run.rates else {}
        speeds = [known[rate] for rate in reversed(Rates.model_fields) if rate in known]
        if speeds != sorted(speeds, reverse=True) or any(speed <= 0 for speed in speeds):
            names = {"pure_compute": "core", "no_eval": "no eval", "raw": "whole"}
            what = ", ".join(f"{measured} {known[rate]:.4g}" for rate, measured in names.items() if rate in known)
            reasons.append(f"{name}throughputs must fall in this order: {what}")
        longest, each = record.config.get("max_seq_length"), run.tokens_per_item
        if isinstance(longest, int) and each is not None and each > longest:
            reasons.append(f"{name}a {record.item} is said to have {each:.6g} tokens, and at most {longest} fit")
        claimed = run.examination.claimed if run.examination else run.metric
        if run.converged and claimed is not None and record.target is not None and not _reached(record, claimed):
            reasons.append(f"{name}it is said to have converged, but {_below(record, claimed, run.samples)}")
    reasons += wrong_flops(record.flops, f"{record.item} and step")
    return reasons + impossible_utilisation(record.utilisation, record.chip)


def _shortfalls(record: TrainingRecord) -> list[str]:
    """Every run must reach the target, but for the policy's share of them: of five or more, one in five."""
    short = [run for run in record.runs if _is_short(record, run)]
    if len(short) <= math.floor(record.policy.failing_seeds * len(record.runs) + 1e-9):
        return []
    return [f"{_named(record, run)}{_shortfall(record, run)}" for run in short]


def _too_few(record: TrainingRecord) -> list[str]:
    runs, least = len(record.runs), record.policy.least_seeds
    told = f"it was trained {runs} times, the policy asks for {least}: --repeat {least} or more"
    return [told] if runs < least else []


def _missed_instances(record: TrainingRecord) -> list[str]:
    """Independent servers each train the case: a mean hides none that missed the target."""
    sign = "below" if record.better == "higher" else "above"
    missed = [
        f"{_named(record, run)}instance {number}: {record.metric} {accuracy:.5f} is {sign} the target {record.target:g}"
        for run in record.runs
        if run.instances and record.target is not None
        for number, accuracy in enumerate(run.instances.accuracies)
        if number and not _reached(record, accuracy)
    ]
    short = [
        (name, server) for run in record.runs for name, server in _further(record, run) if _is_short(record, server)
    ]
    return [*missed, *(f"{name}{_shortfall(record, server)}" for name, server in short)]


def _is_short(record: TrainingRecord, run: SeedRun) -> bool:
    """Whether a run missed the target, by what its weights have where they were examined.

    Another processor rounds otherwise: up to ROUNDING samples below what a rank saw at the target is no miss; nor is,
    on some of the data, what MISSED standard errors may make up for.
    """
    if not run.converged or run.failure is not None:
        return True
    found = run.examination
    if found is None or found.metric is None or record.target is None:
        return False
    slack = ROUNDING / max(found.weight, 1.0) + MISSED * found.error
    return not _reached(record, found.metric + (slack if record.better == "higher" else -slack))


def _reached(record: TrainingRecord, metric: float) -> bool:
    return record.target is None or (metric >= record.target if record.better == "higher" else metric <= record.target)


def _shortfall(record: TrainingRecord, run: SeedRun) -> str:
    if run.failure is not None:
        return run.failure.cause
    found = run.examination
    if run.converged and found and not found.whole and found.metric is not None:  # it was said to have the target
        return f"on {found.samples} samples drawn, {_below(record, found.metric, run.samples)}"
    return "it did not converge" if run.metric is None else _below(record, run.metric, run.samples)


def _below(record: TrainingRecord, metric: float, samples: int | None) -> str:
    if record.target is None:
        return "it did not converge"
    sign = "below" if record.better == "higher" else "above"
    return f"{record.metric} {metric:.5f} is {sign} the target {record.target:g} after {samples} samples"


def _untrained(record: TrainingRecord) -> list[str]:
    """A model that is at the target before its first step has nothing to be timed for."""
    return [
        f"{name}the model was at the target before it was trained"
        for name, run in _trained(record)
        for each in run.evaluations
        if each.samples == 0 and each.metric is not None and _reached(record, each.metric)
    ]


def _too_fast(record: TrainingRecord) -> list[str]:
    """Converging sooner than reference runs of the same global batch ever would is a change of the task."""
    samples = reference_samples(record)
    floor = soonest(samples, _interval(record)) if samples else None
    return [
        f"{name}converged after {run.samples_to_target} samples, sooner than the reference runs"
        f" ({', '.join(map(str, samples))}) allow ({floor:.0f})"
        for name, run in _trained(record)
        if floor is not None and run.samples_to_target is not None and run.samples_to_target < floor
    ]


def reference_samples(record: TrainingRecord) -> list[int]:
    """Samples to target of the reference runs at this global batch; empty if there are none."""
    references = record.config.get("references") or {}
    return list(references.get(str(record.global_batch_size), ()))


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


def _contention(record: TrainingRecord) -> list[str]:
    """Others on the cores that the training needed."""
    bound = bound_of(record)
    return [
        f"{name}{reason}: run again on a quiet machine"
        for name, run in _trained(record)
        for reason in contention_of(run.contention, bound, record.policy.noise)
    ]


def _disturbances(record: TrainingRecord) -> list[str]:
    return [f"{name}{what}" for name, run in _trained(record) for what in disturbances(run.monitoring)]
