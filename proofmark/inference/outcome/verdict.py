"""The verdict on a run record: what an inference case adds to the stages of every suite."""

from __future__ import annotations

import math
from collections.abc import Iterator

from proofmark.inference.outcome.record import Measurement, RunRecord, Score
from proofmark.inference.outcome.rounds import margin
from proofmark.inference.outcome.surplus import surplus
from proofmark.inference.outcome.validated import held_to, unvalidated
from proofmark.literal import digits_apart, literal
from proofmark.measuring.mixed import ENOUGH
from proofmark.measuring.statistics import samples_needed
from proofmark.measuring.window import FOO_TIME_EXPECTED
from proofmark.record.parts import Verdict, VerdictKind
from proofmark.rules.aims import factor_kept, reaches, wrong_side
from proofmark.rules.case_file import NOISE
from proofmark.verdict import engine
from proofmark.verdict.noise import bound_of, contention_in, noise_of, slowed_by_its_monitor
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

REQUIRED_CHECKS = frozenset(
    {
        "no memorised data",
        "no cached answers",
        "answers new inputs",
        "waits for its device",
        "leaves its inputs alone",
        "no faster when timed",
    }
)
"""Honesty checks without which an engine's figures count for nothing."""

LONGEST = 3600
"""Seconds that `min_seconds` may be."""

ALIKE = "answers alike when timed"

TIMED_CHECKS = frozenset({"no slower when fresh", ALIKE})
"""Those too, where a timed round has as many batches as there must be for some to be fresh."""


def judge(record: RunRecord) -> Verdict:
    """Judge a run."""
    return engine.judge(record, stages(record))


def stages(record: RunRecord) -> Iterator[Stage]:
    """After legality: whether it could run and did, then accuracy, then honesty, then what disturbed it."""
    yield VerdictKind.UNSUPPORTED, _unsupported(record)
    yield VerdictKind.ERROR, _failed_steps(record)
    inaccurate, dishonest = _accuracy_shortfalls(record), _dishonesty(record)
    shortfalls: list[Stage] = [
        (VerdictKind.FAIL_ACCURACY, inaccurate and [*inaccurate, *dishonest]),  # an early answer is a wrong one too
        (VerdictKind.FAIL_HONESTY, dishonest),
    ]
    if left_out := parts_left_out(record):
        yield from shortfalls  # as far as they are known
    yield VerdictKind.INSUFFICIENT, left_out
    yield VerdictKind.ERROR, _missing_figures(record)
    misused = [*_beyond_its_cores(record), *_slowed_by_its_monitor(record)]
    yield VerdictKind.ERROR, [*_impossible_figures(record), *misused]
    yield from shortfalls
    yield VerdictKind.ERROR, [f"{what}: run again on a quiet machine" for what in record.disturbed]
    yield VerdictKind.INSUFFICIENT, _too_little(record)
    yield VerdictKind.AMBIGUOUS, disturbances(record.monitoring, record.policy.noise) + _noise(record)


def _unsupported(record: RunRecord) -> list[str]:
    return [step.reason or step.name for step in record.steps if step.kind == "unsupported"]


def _failed_steps(record: RunRecord) -> list[str]:
    reasons = [
        f"step {step.name} failed: {step.reason or 'no reason recorded'}"
        for step in record.steps_and_audit
        if step.status == "failed" and step.name != record.interrupted
    ]
    if record.interrupted:
        reasons.append(f"interrupted in step {record.interrupted}")
    return reasons


def _as_many_as_asked(record: RunRecord, count: int, asked: int) -> bool:
    """A latency run may add rounds for the sake of its percentiles."""
    return count == asked or (count > asked and record.config.get("scenario") == "latency")


def _missing_figures(record: RunRecord) -> list[str]:
    """Measurements that should be there and are not."""
    reasons = []
    measured, rounds = record.measured(), record.config.get("repeat")
    if measured is None:
        reasons.append("nothing was measured")
    elif rounds is not None and not _as_many_as_asked(record, len(measured.rounds), rounds):
        reasons.append(f"{len(measured.rounds)} of {rounds} rounds are in the record")
    if measured is not None:
        reasons += _too_short(measured, record.config.get("min_seconds", 0.0))
        reasons += ["the loader was not measured"] if measured.loader is None else []
        reasons += [
            f"round {number} does not say what else the machine did (contention)"
            for number, timed in enumerate(measured.rounds, 1)
            if timed.contention is None
        ]
    reasons += [f"step {step.name} was not reached" for step in record.steps if step.status == "not_reached"]
    reasons += damaged_lines(record, "the event log")
    reasons += _missing_identity(record)
    return reasons + [reason for scores in record.accuracy.scores for reason in _missing_scores(record, scores)]


def _missing_scores(record: RunRecord, scores: Score) -> Iterator[str]:
    """Scores that are missing: of the framework in float32, and of what the case is ranked by."""
    held = {"fp32 framework": ("framework_validation", scores.framework_fp32)}
    if record.compiler is None and record.accuracy.framework is not None:  # else its headline is missed already
        held["framework"] = ("framework_validation", scores.framework)
    held["engine"] = ("engine_inference", scores.engine)
    for name, (step, score) in held.items():
        if record.step(step).status == "done" and (score is None or not math.isfinite(score)):
            yield f"the {name}'s {scores.metric} is missing or not a number: {literal(score)}"


def _too_short(measured: Measurement, least: float) -> list[str]:
    """Rounds of less compute than was asked for."""
    return [
        f"round {number} was timed for {timed.core_seconds:.{digits_apart(timed.core_seconds, least)}g} s of compute, "
        f"{least:g} s are asked for (min_seconds)"
        for number, timed in enumerate(measured.rounds, 1)
        if 0 < timed.core_seconds < least
    ]


def _missing_identity(record: RunRecord) -> list[str]:
    """What makes a figure one of this task: its data, weights and FLOPs, its checks, all of its samples."""
    has_model = record.step("framework_validation").status == "done"
    reasons = missing_identity(record.dataset, record.weights, weights_loaded=has_model)
    if has_model and record.measured() is not None:
        reasons += missing_utilisation(record.flops, record.utilisation, record.chip)
    reasons += missing_checks(_required_checks(record) - {check.name for check in record.checks})
    size = record.dataset.items if record.dataset else None
    for name, measurement in (("framework", record.framework), ("engine", record.engine)):
        for number, timed in enumerate(measurement.rounds if measurement else (), 1):
            if size is not None and timed.items - timed.filled != size * timed.passes:
                ran = timed.items - timed.filled
                reasons.append(f"{name} round {number} ran {ran} of {size * timed.passes} samples")
            if timed.filled * timed.batches >= max(1, timed.items):
                filled = f"{timed.filled} samples that came once more"
                reasons.append(f"{name} round {number} was filled up with {filled}: a whole batch or more")
    return reasons


def _required_checks(record: RunRecord) -> frozenset[str]:
    """The engine's checks; and the framework's, if it ran in a process with a vendor's code: all of them if the run is
    ranked by it."""
    required = frozenset[str]()
    if record.engine is not None:
        required |= REQUIRED_CHECKS | (TIMED_CHECKS if _has_fresh(record.engine) else frozenset())
    if record.framework is not None and record.framework_held and "framework" in record.isolation:
        alone = record.compiler is None
        own = REQUIRED_CHECKS if alone else frozenset[str]()
        own |= (TIMED_CHECKS if alone else {ALIKE}) if _has_fresh(record.framework) else frozenset[str]()
        required |= {f"{name} (framework)" for name in own}
    return required


def _has_fresh(measurement: Measurement) -> bool:
    return any(timed.batches >= ENOUGH for timed in measurement.rounds)


def _impossible_figures(record: RunRecord) -> list[str]:
    """Figures that cannot be true, so that something was not measured as it should be."""
    reasons, bound = [], record.config.get("max_noise", NOISE)
    for name, measurement in (("framework", record.framework), ("engine", record.engine)):
        reasons += _impossible_measurement(name, measurement, bound) if measurement else []
    reasons += wrong_flops(record.flops, record.item)
    return reasons + impossible_utilisation(record.utilisation, record.chip)


def _impossible_measurement(name: str, measurement: Measurement, bound: float) -> list[str]:
    reasons = []
    for number, timed in enumerate(measurement.rounds, 1):
        if not 0 < timed.core_seconds <= timed.whole_seconds:
            reasons.append(
                f"{name} round {number}: core time {timed.core_seconds:.6g} s is not within the whole "
                f"{timed.whole_seconds:.6g} s"
            )
        if timed.accuracy is None or not math.isfinite(timed.accuracy):
            reasons.append(f"{name} round {number}: accuracy is missing or not a number: {timed.accuracy}")
    whole = measurement.whole
    for stage, rate in (("loader", measurement.loader), ("core", measurement.core)):
        if rate is not None and whole.value > rate.value * (1 + margin(whole, rate, bound)):
            reasons.append(
                f"{name}: whole {whole.value:.4g} items/s is above {stage} {rate.value:.4g}, which it contains, by "
                f"more than their noise"
            )
    return reasons


def _accuracy_shortfalls(record: RunRecord) -> list[str]:
    """The published gate, of every value that has a target: that one, and a share of what the framework reached."""
    judged = (held_to(record, scores) for scores in record.accuracy.scores if scores.target is not None)
    return [reason for scores in judged for reason in _misses(record, scores)]


def _misses(record: RunRecord, scores: Score) -> Iterator[str]:
    """How a value falls short, in sentences."""
    ratio, off = record.policy.accuracy_ratio, wrong_side(scores.better)
    for name, score in (
        ("fp32 framework", scores.framework_fp32),
        ("engine" if record.compiler else "framework", scores.engine if record.compiler else scores.framework),
    ):
        if score is not None and not scores.aim.reached(score):
            yield f"{name} {scores.metric} {_beside(score, scores.target)} is {off} the target {scores.target}"
    floor, reference = scores.floor(ratio), scores.framework_fp32
    if scores.engine is None or floor is None or reference is None or reaches(scores.engine, floor, scores.better):
        return
    yield (
        f"engine {scores.metric} {_beside(scores.engine, floor)} is {off}"
        f" {factor_kept(reference, ratio, scores.better):.1%} of the fp32 framework's {reference:.5f}"
        f" ({_beside(floor, scores.engine)})"
    )


def _beside(score: float, other: float | None) -> str:
    """A score with as many digits as tell it from what it is held to."""
    return f"{score:.{digits_apart(score, other, 5, 'f')}f}"


def _noise(record: RunRecord) -> list[str]:
    """Rounds so far apart, or a machine so busy with something else, that their rate says little."""
    measured = record.measured()
    if measured is None:
        return []
    bound = bound_of(record)
    reasons = noise_of(measured.rounds, measured.core, bound, record.policy.noise)
    if not reasons:
        return []
    scatters = measured.core.noise is not None and measured.core.noise > bound
    before = [f"measured before ({number}): {what}" for number, what in enumerate(measured.repeated, 1)]
    alone = not any(why.startswith("contention") for why in reasons)  # longer rounds rid nobody of others
    return [*reasons, *before, f"run again on a quiet machine{_longer(measured) if scatters and alone else ''}"]


def _beyond_its_cores(record: RunRecord) -> list[str]:
    measured = record.measured()
    return beyond_its_cores(contention_in(measured.rounds)) if measured else []


def _slowed_by_its_monitor(record: RunRecord) -> list[str]:
    """The framework too, with which its engine is compared."""
    timed = (("framework", record.framework), ("engine", record.engine))
    return [reason for name, each in timed if each is not None for reason in slowed_by_its_monitor(each.rounds, name)]


def _longer(measured: Measurement) -> str:
    """Rounds twice as long as these were, which may be longer than was asked for: a pass over the data is not cut."""
    seconds = math.ceil(2 * max(timed.core_seconds for timed in measured.rounds))
    return f", or longer (--min-seconds {seconds})" if seconds <= LONGEST else ""


def _dishonesty(record: RunRecord) -> list[str]:
    """What the engine was seen to do, checks that failed without a word about it, and a metric that is too good."""
    accusations = [*record.dishonest, *surplus(record)]
    for name, found in (("framework", record.framework), ("engine", record.engine)):
        if not accusations and found is not None and found.foo_seconds and found.foo_time_reason is None:
            accusations.append(f"the {name} reports {found.foo_seconds:.6g} s of foo_time; {FOO_TIME_EXPECTED}")
    return accusations or [f"the honesty check '{check.name}' failed" for check in record.checks if not check.passed]


def _too_little(record: RunRecord) -> list[str]:
    """A latency run exists for its percentiles; and an engine without a reference could be of any model."""
    measurement = record.engine
    measured = record.measured()
    if measured is not None and len(measured.rounds) < record.policy.least_rounds:
        return [_too_few(len(measured.rounds), record.policy.least_rounds)]
    if measurement is not None and (reasons := unvalidated(record)):
        return reasons
    if measurement is not None and measurement.foo_seconds:
        return [_foo_time(measurement)]
    percentile = record.policy.latency_percentile
    if record.config.get("scenario") != "latency" or measured is None:
        return []
    if f"p{percentile:g}" in measured.latency_ms:
        return []
    needed = samples_needed(percentile)
    timed = f"{measured.latency_batches} were timed"
    return [f"a {percentile:g}th percentile of latency needs {needed} samples, {timed}"]


def _foo_time(measured: Measurement) -> str:
    """Say that a run is ranked by what its calls took, and not by what their vendor says of them."""
    seconds = sum(timed.core_seconds for timed in measured.rounds)
    share = f"{measured.foo_seconds:.4g} s of foo_time in {seconds:.4g} s of compute"
    return f"the engine reports {share}, which nobody can check: {measured.foo_time_reason}"


def _too_few(rounds: int, least: int) -> str:
    if rounds == 1:
        return f"one round says nothing of its own noise: --repeat {max(3, least)} or more"
    return f"{rounds} rounds were timed, the policy asks for {least}: --repeat {least} or more"
