"""The verdict on a training record: what a training adds to the stages of every suite."""

from __future__ import annotations

import math
from collections.abc import Iterator

from proofmark.record.parts import Utilisation, Verdict, VerdictKind
from proofmark.training.outcome.checks import required
from proofmark.training.outcome.record import Rates, SeedRun, TrainingRecord
from proofmark.training.outcome.references import held_to
from proofmark.training.outcome.shortfall import below, claimed, is_short, missed, shortfall
from proofmark.verdict import engine
from proofmark.verdict.noise import bound_of, contention_of, scatters
from proofmark.verdict.stages import (
    Stage,
    beyond_its_cores,
    damaged_lines,
    disturbances,
    impossible_utilisation,
    missing_checks,
    missing_identity,
    missing_utilisation,
    parts_left_out,
    wrong_flops,
)


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
    yield VerdictKind.ERROR, [*_missing_figures(record), *_impossible_figures(record), *_beyond_its_cores(record)]
    yield VerdictKind.FAIL_ACCURACY, [*_shortfalls(record), *_missed_instances(record)]
    yield VerdictKind.INSUFFICIENT, _of_a_log(record) if record.read_from else []
    yield VerdictKind.INSUFFICIENT, _too_few(record)
    disturbed = [*_disturbances(record), *_uneven(record), *_contention(record)]
    yield VerdictKind.AMBIGUOUS, [*_untrained(record), *_too_fast(record), *disturbed]


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
        f"{name}{cause}"
        for name, run in _trained(record)
        if run.failure is not None and not run.failure.diverged
        for cause in run.failure.cause.splitlines()
    ]
    return [f"interrupted in {record.interrupted}"] if record.interrupted else reasons


def _dishonesty(record: TrainingRecord) -> list[str]:
    """What shows that a run did not train the case, or not in the time that it reports."""
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
    """What is missing in a run that Proofmark measured. One that diverged came to no figures."""
    if run.failure is not None:
        return []
    reasons = []
    if run.instances is not None and len(run.instances.accuracies) != 1 + len(run.servers):
        reasons.append(f"of {len(run.instances.accuracies)} servers {1 + len(run.servers)} left their logs")
    lacking = [record.metric] if run.metric is None or run.converged is None else []
    lacking += [name for name in record.others if run.metrics.get(name) is None]
    if lacking:
        reasons.append(f"the last evaluation has no {', '.join(lacking)}")
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
    if record.fed and run.handed_out is None:
        reasons.append("nothing says how many samples its ranks took from the processes that load them")
    if run.examination and run.examination.reason:
        reasons.append(f"its weights were not evaluated outside the ranks: {run.examination.reason}")
    if run.examination and run.examination.without_replay:
        reasons.append(run.examination.without_replay)
    resumed = run.resumed_from is not None
    needed = required(bool(record.adapted), bool(run.converged), record.audited, resumed)
    return reasons + missing_checks(needed - {check.name for check in run.checks})


def _of_a_log(record: TrainingRecord) -> list[str]:
    """What nobody knows of a training that others logged."""
    uncounted = [
        f"{_named(record, run)}{run.uncounted} of its evaluations do not say after how many samples; all are left out"
        for run in record.runs
        if run.uncounted
    ]
    return ["read from a log: Proofmark has not measured it", *uncounted]


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
        reasons += [f"{name}core: {why}" for why in _impossible_core(record, run)]
        longest, each = record.config.get("max_seq_length"), run.tokens_per_item
        if isinstance(longest, int) and each is not None and each > longest:
            reasons.append(f"{name}a {record.item} is said to have {each:.6g} tokens, and at most {longest} fit")
        if (early := _ended_early(record, run)) is not None:
            reasons.append(f"{name}{early}")
        evaluated = run.evaluations[-1].samples if run.evaluations and run.failure is None else run.samples
        if evaluated != run.samples and not record.read_from:
            reasons.append(f"{name}its last evaluation is after {evaluated} samples, and its end after {run.samples}")
        if run.handed_out is not None and run.handed_out.wrong:
            reasons.append(f"{name}{run.handed_out.wrong}")
        said = claimed(record, run)
        if run.converged and missed(record, said):
            reasons.append(f"{name}it is said to have converged, but {below(record, said, run.samples)}")
    reasons += wrong_flops(record.flops, f"{record.item} and step")
    return reasons + impossible_utilisation(record.utilisation, record.chip)


def _impossible_core(record: TrainingRecord, run: SeedRun) -> list[str]:
    """That it computes faster than its devices can: how much of the time compute took is its ranks' word."""
    core, whole, mfu = run.rates and run.rates.pure_compute, record.rates.get("raw"), record.utilisation.mfu
    if not core or not whole or not mfu or impossible_utilisation(record.utilisation, record.chip):
        return []
    return impossible_utilisation(Utilisation(mfu=mfu * core / whole.value), record.chip)


def _ended_early(record: TrainingRecord, run: SeedRun) -> str | None:
    """What shows that a run which missed the target had not trained for as long as it might."""
    items = record.dataset.items if record.dataset else None
    epochs, limit = (record.config.get(key) for key in ("max_epoch", "max_samples_termination"))
    if record.read_from or run.failure is not None or run.converged is not False or not items or not epochs:
        return None
    planned = min(items * epochs, limit or math.inf)
    if run.samples >= planned:
        return None
    return f"it ended after {run.samples} samples, short of the target; it had {planned} to reach it"


def _shortfalls(record: TrainingRecord) -> list[str]:
    """Every run must reach the target, but for the policy's share of them: of five or more, one in five."""
    short = [run for run in record.runs if is_short(record, run)]
    if len(short) <= math.floor(record.policy.failing_seeds * len(record.runs) + 1e-9):
        return []
    return [f"{_named(record, run)}{shortfall(record, run)}" for run in short]


def _too_few(record: TrainingRecord) -> list[str]:
    runs, least = len(record.runs), record.policy.least_seeds
    reason = f"it was trained {runs} times, the policy asks for {least}: --repeat {least} or more"
    return [reason] if runs < least else []


def _missed_instances(record: TrainingRecord) -> list[str]:
    """Independent servers each train the case: a mean hides none that missed the target."""
    reasons = [
        f"{_named(record, run)}instance {number}: {what}"
        for run in record.runs
        if run.instances
        for number, accuracy in enumerate(run.instances.accuracies)
        if number
        for what in missed(record, {record.metric: accuracy})
    ]
    short = [
        (name, server) for run in record.runs for name, server in _further(record, run) if is_short(record, server)
    ]
    return [*reasons, *(f"{name}{shortfall(record, server)}" for name, server in short)]


def _untrained(record: TrainingRecord) -> list[str]:
    """A model that is at the target before its first step has nothing to be timed for."""
    return [
        f"{name}the model was at the target before it was trained"
        for name, run in _trained(record)
        for each in run.evaluations
        if each.samples == 0
        and each.metric is not None
        and not missed(record, {record.metric: each.metric, **each.others})
    ]


def _too_fast(record: TrainingRecord) -> list[str]:
    """Converging sooner than reference runs ever would is a change of the task."""
    found = held_to(record)
    if found is None:
        return []
    batch, samples, floor = found
    at = "" if batch == record.global_batch_size else f" at a global batch of {batch}"
    return [
        f"{name}converged after {run.samples_to_target} samples, sooner than the reference runs{at}"
        f" ({', '.join(map(str, samples))}) allow ({floor:.0f})"
        for name, run in _trained(record)
        if run.samples_to_target is not None and run.samples_to_target < floor
    ]


def _uneven(record: TrainingRecord) -> list[str]:
    """A pace that changed while it trained, by whatever did that: its rates are those of no one machine."""
    bound = bound_of(record)
    return [
        f"{name}its compute by parts of the training {scatters(run.pace.noise, bound)}"
        for name, run in _trained(record)
        if run.pace is not None and run.pace.noise is not None and run.pace.noise > bound
    ]


def _contention(record: TrainingRecord) -> list[str]:
    """Others on the cores that the training needed."""
    bound = bound_of(record)
    return [
        f"{name}{reason}: run again on a quiet machine"
        for name, run in _trained(record)
        for reason in contention_of(run.contention, bound, record.policy.noise)
    ]


def _beyond_its_cores(record: TrainingRecord) -> list[str]:
    return [what for name, run in _trained(record) for what in beyond_its_cores(run.contention, name)]


def _disturbances(record: TrainingRecord) -> list[str]:
    noise = record.policy.noise
    return [f"{name}{what}" for name, run in _trained(record) for what in disturbances(run.monitoring, noise)]
