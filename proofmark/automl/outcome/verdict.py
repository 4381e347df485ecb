"""The verdict on a search: what makes it valid, each rule with its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from proofmark.automl.logs.event_types import gave_up
from proofmark.automl.outcome.record import AutoMLRecord, EpochRecord, Items, TrialRecord
from proofmark.literal import digits_apart
from proofmark.record.parts import Verdict, VerdictKind
from proofmark.training.outcome.checks import CLOCK, required
from proofmark.verdict import engine
from proofmark.verdict.stages import (
    Stage,
    beyond_its_cores,
    damaged_lines,
    impossible_utilisation,
    missing_checks,
    missing_identity,
    parts_left_out,
)

MOST = 16
"""Trials that are named where they break a rule."""

PRECISE = frozenset({"float64", "float32", "float16", "bfloat16"})
"""Numbers of at least 16 bits."""


@dataclass(frozen=True)
class Rule:
    """One rule of validity, and what is against it."""

    name: str
    kind: VerdictKind
    broken: Sequence[str]


def judge(record: AutoMLRecord) -> Verdict:
    """Judge a search."""
    return engine.judge(record, stages(record))


def stages(record: AutoMLRecord) -> Iterator[Stage]:
    """After legality: whether it could run and did; then all rules of validity at once, by the gravest one broken."""
    yield VerdictKind.UNSUPPORTED, [record.unsupported] if record.unsupported else []
    yield VerdictKind.ERROR, _broken_off(record)
    yield VerdictKind.INSUFFICIENT, parts_left_out(record)
    broken = [rule for rule in rules(record) if rule.broken]
    kind = max((rule.kind for rule in broken), key=lambda kind: kind.exit_code, default=VerdictKind.ERROR)
    if _dishonest(record):  # trials that fail by it may leave nothing else to judge, which is no excuse
        kind = VerdictKind.FAIL_HONESTY
    yield kind, [reason for rule in broken for reason in rule.broken]
    yield VerdictKind.ERROR, impossible_utilisation(record.utilisation, record.chip)
    yield VerdictKind.ERROR, beyond_its_cores(record.contention)
    yield VerdictKind.AMBIGUOUS, _disturbed(record)


def rules(record: AutoMLRecord) -> list[Rule]:
    """Every rule of validity, kept or not."""
    error, honesty = VerdictKind.ERROR, VerdictKind.FAIL_HONESTY
    return [
        Rule("the journal is as it was written", honesty, _edited(record)),
        Rule("every trial is accounted for", error, _unaccounted(record)),
        Rule("some came to a good end, and no three in a row failed", error, _failures(record)),
        Rule("what was trained is what the case says", honesty, _dishonest(record)),
        Rule("the counter of operations equals its oracle", honesty, _miscounted(record)),
        Rule("no trial computed more than it was given", honesty, _overdone(record)),
        Rule("every epoch that was finished was of all images", error, _unfinished(record)),
        Rule("computed in at least 16 bits", honesty, _imprecise(record)),
        Rule("data identified, and kept apart", error, _data(record)),
        Rule("the best network was judged", error, _unjudged(record)),
        Rule("the best network is as good as it was chosen for", honesty, _worse(record)),
        Rule("what was computed has a score", error, _unscored(record)),
        Rule("the machine was watched, where the score is ranked", error, _unwatched(record)),
        Rule("lasted as long as it must", VerdictKind.INSUFFICIENT, _short(record)),
        Rule(
            "the best network is good enough on data that no trial was chosen by",
            VerdictKind.FAIL_ACCURACY,
            _bad(record),
        ),
    ]


def _disturbed(record: AutoMLRecord) -> list[str]:
    """Others on the cores that the search needed: for a score that may be set beside others'."""
    if not record.rankable or record.was_spread or record.trials_among_others:
        return []
    return [f"{reason}: run again on a quiet machine" for reason in record.disturbed]


def _broken_off(record: AutoMLRecord) -> list[str]:
    if record.interrupted:
        return [f"interrupted in {record.interrupted}"]
    return [record.failure] if record.failure else []


def _failures(record: AutoMLRecord) -> list[str]:
    failed = [trial for trial in record.trials if trial.status == "failed"]
    if record.trials and record.best is None:
        return ["no trial came to its end", *(f"trial {trial.number}: {trial.reason}" for trial in failed)]
    return [record.end_reason] if record.end_reason and gave_up(record.end_reason) else []


def _edited(record: AutoMLRecord) -> list[str]:
    changed = [str(trial.number) for trial in record.trials if not trial.log_intact]
    logs = [f"the log of trial {', '.join(changed[:MOST])} is not the one that its driver read"] if changed else []
    return [*(f"the journal: {fault}" for fault in record.faults[:MOST]), *damaged_lines(record, "the logs"), *logs]


def _unaccounted(record: AutoMLRecord) -> list[str]:
    reasons = []
    numbers = [trial.number for trial in record.trials]
    if numbers != list(range(len(numbers))):
        known = set(numbers)  # and no set of all that there might be: a number may be any
        missing = islice((str(n) for n in range(max(numbers, default=0) + 1) if n not in known), MOST)
        reasons.append(f"the journal has no trial {', '.join(missing)}")
    open_ = [str(trial.number) for trial in record.trials if trial.status not in ("finished", "failed")]
    if open_:
        reasons.append(f"trial {', '.join(open_[:MOST])} has no end")
    finished = {trial.number for trial in record.trials if trial.status == "finished"}
    orphans = [trial for trial in record.trials if trial.parent is not None and trial.parent not in finished]
    reasons += [f"trial {trial.number} is of trial {trial.parent}, which is not finished" for trial in orphans[:MOST]]
    if not record.trials:
        reasons.append("there was no trial")
    if not record.ended:
        reasons.append("the journal has no end: whoever wrote it was killed before")
    return reasons


def _dishonest(record: AutoMLRecord) -> list[str]:
    """Failed checks, and those without which a finished trial counts for nothing."""
    needed = required(bool(record.adapted), converged=False) - {CLOCK}  # a trial's time is its driver's, who keeps it
    reasons = []
    for trial in record.trials:
        reasons += [f"trial {trial.number}: {check.meaning}" for check in trial.checks if not check.passed]
        missing = needed - {check.name for check in trial.checks} if trial.status == "finished" else ()
        reasons += missing_checks(missing, f"trial {trial.number}: ")
    return reasons


def _miscounted(record: AutoMLRecord) -> list[str]:
    reasons = []
    for trial in record.trials:
        if trial.status == "finished" and trial.counted is None:
            reasons.append(f"trial {trial.number}: nothing counted its operations")
        elif trial.counted and trial.counted != (trial.forward_flops, trial.training_flops):
            claimed = f"{trial.forward_flops} forward and {trial.training_flops} in a step"
            found = f"{trial.counted[0]} and {trial.counted[1]}"
            reasons.append(f"trial {trial.number} is credited {claimed} per image, torch's counter has {found}")
    return reasons


def _overdone(record: AutoMLRecord) -> list[str]:
    """Trials whose ranks say that they did more than there was to do, or for longer: a search is credited for both."""
    share = record.training_share
    if share is not None and share > 1:  # a trial that says too soon that it computes no more shares its device
        return [f"its trials say that they trained for {share:.4g} times as long as they had devices"]
    return [reason for trial in record.trials for reason in _more_than_given(trial, record)][:MOST]


def _more_than_given(trial: TrialRecord, record: AutoMLRecord) -> Iterator[str]:
    trained, peak = [epoch for epoch in trial.epochs if epoch.images], record.chip.peak
    if peak is not None and trial.ended is not None and record.ran_here(trial):  # of others nobody saw the chip
        devices = min(record.config.get("devices_per_trial", 1), record.devices)  # ranks share a processor
        most = peak.flops_per_second * devices * trial.lasted
        for said, how in ((trial.flops, ""), (trial.compatible_flops, ", by AIPerf's formulas")):
            if said > most:
                yield f"trial {trial.number} says that it did {said:.4g} FLOP{how}, its devices' peak gives {most:.4g}"
                break
    if trial.ended is not None and trial.trained > trial.lasted:
        yield f"trial {trial.number} says that it trained for {trial.trained:.4g} s, and lasted {trial.lasted:.4g} s"
    for what, said, given in (
        ("epochs", len(trained), trial.asked),
        ("evaluations", len(trial.epochs), None if trial.asked is None else trial.asked + 1),
        ("images in an epoch", max((epoch.images for epoch in trained), default=0), record.train_items),
        ("images in an evaluation", max((epoch.evaluated for epoch in trial.epochs), default=0), record.search_items),
    ):
        if given is not None and said > given:
            yield f"trial {trial.number} says that it did {said} {what}, of which it was given {given}"


def _unfinished(record: AutoMLRecord) -> list[str]:
    """Finished trials that tell of epochs of too few images.

    A trial that is ended within an epoch does not tell of that epoch. For too many images see `_overdone`.
    """
    items, reasons = record.items, []
    for trial in record.trials:
        unfinished = [(n, epoch) for n, epoch in trial.unfinished_epochs(items) if not _is_more(epoch, items)]
        if trial.status != "finished" or not unfinished:
            continue
        number, epoch = unfinished[0]
        trained, evaluated = _of(epoch.images, items.train), _of(epoch.evaluated, items.search)
        reasons.append(
            f"trial {trial.number} did not finish epochs that it tells of: {len(unfinished)} of its "
            f"{len(trial.epochs)} evaluations were not of all images, or not after training on all; "
            f"number {number + 1} was of {evaluated}, after {trained}"
        )
    return reasons[:MOST]


def _is_more(epoch: EpochRecord, items: Items) -> bool:
    return any(n is not None and said > n for said, n in zip((epoch.images, epoch.evaluated), items, strict=True))


def _of(images: int, all_of_them: int | None) -> str:
    return f"{images}" if all_of_them is None else f"{images} of {all_of_them}"


def _imprecise(record: AutoMLRecord) -> list[str]:
    reasons = []
    for trial in record.trials:
        if trial.status != "finished":
            continue
        low = [name for name in trial.dtypes if name not in PRECISE]
        if low:
            reasons.append(f"trial {trial.number} computed in {', '.join(low)}: fewer than 16 bits")
        elif not trial.dtypes:
            reasons.append(f"trial {trial.number}: nobody saw in which numbers it computed")
    return reasons


def _data(record: AutoMLRecord) -> list[str]:
    reasons = missing_identity(record.dataset, None, weights_loaded=False)
    if record.held_out is None:
        reasons.append("nothing identifies the held-out data")
    if record.chosen_on is None and any(trial.evaluated_on is not None for trial in record.trials):
        reasons.append("nothing identifies the data that trials were chosen by")
    for other, what in ((record.dataset, "was trained on"), (record.chosen_on, "trials were chosen by")):
        if record.held_out and other and record.held_out.sha256 == other.sha256:
            reasons.append(f"the held-out data is the data that {what}")
    return [*reasons, *_other_data(record)]


def _other_data(record: AutoMLRecord) -> list[str]:
    """Trials with other data than the record identifies: of a node that has others at the same path, or of another
    time."""
    reasons = []
    for trial in record.trials:
        for what, had, identified in (
            ("trained on", trial.trained_on, record.dataset),
            ("was chosen by", trial.evaluated_on, record.chosen_on),
        ):
            known = had is not None or record.chosen_on is not None  # older journals lack both
            if trial.status == "finished" and identified and known and had != identified.sha256:
                found = "other data than the record identifies" if had else "nobody knows what"
                reasons.append(f"trial {trial.number} {what} {found}")
    return reasons[:MOST]


def _short(record: AutoMLRecord) -> list[str]:
    least, lasted = record.config.get("min_seconds", 0.0), record.search_seconds
    return [f"it must last at least {least:g} s and did not"] if lasted is None or lasted < least else []


def _unjudged(record: AutoMLRecord) -> list[str]:
    if record.best is None:
        return []  # said of the trials
    if record.held_out_accuracy is None:
        return [f"nothing says how good the best trial is on held-out data: {record.held_out_reason or 'no reason'}"]
    if record.best and record.examined != record.best.number:
        found = "no trial" if record.examined is None else f"trial {record.examined}"
        return [f"{found} was judged on held-out data, and trial {record.best.number} is the best"]
    if None in record.items:  # else every epoch would be taken for one of all images
        return ["the process that judged it did not say how many images an epoch and an evaluation have"]
    return []


def _worse(record: AutoMLRecord) -> list[str]:
    check = record.examination
    return [f"trial {record.examined}: {check.finding}"] if check is not None and not check.passed else []


def _unscored(record: AutoMLRecord) -> list[str]:
    return ["it has no score"] if record.score is None or record.score.honest is None else []


def _unwatched(record: AutoMLRecord) -> list[str]:
    unseen = record.rankable and record.contention is None
    return ["nothing says what else its machine did (contention)"] if unseen else []


def _bad(record: AutoMLRecord) -> list[str]:
    found = record.held_out_accuracy
    if found is None or found >= record.target:
        return []
    digits = digits_apart(found, record.target, 5, "f")
    return [f"{record.metric} {found:.{digits}f} on held-out data is below the target {record.target:.15g}"]
