"""From a search's journal to its record. The score is a pure function of the journal's events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.automl.outcome.event_types import SESSION_EVENTS
from proofmark.automl.outcome.figures import figures
from proofmark.automl.outcome.record import AutoMLRecord, EpochRecord, TrialRecord
from proofmark.automl.outcome.scoring import marks_of, score_of
from proofmark.automl.outcome.verdict import judge
from proofmark.automl.search.journal import FILE, faults, read_journal
from proofmark.automl.search.running import digest_of_log
from proofmark.automl.search.state import Trial, segments
from proofmark.record.begun import envelope_of
from proofmark.record.chain import digest_of
from proofmark.record.events import CORRUPT, NAMED, Event, read_events, seconds_between
from proofmark.record.parts import Chip, Contention, Flops, Identity, Utilisation
from proofmark.rules.config import EffectiveConfig


def collect(run_dir: Path, begun: Event | None = None) -> AutoMLRecord:
    """The judged record of the search of a session, whole or not.

    Args:
        run_dir: the session's folder of the case.
        begun: the event that it began with, for a log that has lost it.

    Raises:
        ValueError: nothing says what was searched.
    """
    read = list(read_events(run_dir / "events.jsonl", SESSION_EVENTS))
    last = {event["event"]: event for event in read}
    begin = last.get("run_begin", begun)
    if begin is None:
        raise ValueError(f"{run_dir / 'events.jsonl'} does not say what was run")
    config = EffectiveConfig.from_dict(begin["config"])
    folder = Path(last["search"]["folder"]) if "search" in last else None
    events = list(read_journal(folder / FILE)) if folder else []
    damaged = [event["what"] for event in [*read, *events] if event["event"] == CORRUPT]
    record = AutoMLRecord(
        **envelope_of(begin, config),
        **{name: getattr(config, name) for name in ("metric", "target", "rankable")},
        devices=begin["devices"],
        adapted=tuple(begin["adapted"]),
        seconds=seconds_between(begin, read[-1]) if read else None,
        unsupported=begin.get("unsupported"),
        flops=None,
        interrupted=last["interrupted"]["step"] if "interrupted" in last else None,
        partial="partial" in last,
        failure=last["search_failed"]["reason"] if "search_failed" in last else None,
        contention=_contention(last.get("contention")),
        corrupt_lines=len(damaged),
        damaged=tuple(damaged[:NAMED]),
    )
    if folder:
        found = _of_journal(events, folder, config, Chip.model_validate(begin["chip"]))
        record = record.model_copy(update={**found, "ended": found["ended"] and "run_end" in last})
    return record.model_copy(update={"verdict": judge(record)}).with_figures(figures(record))


def _contention(event: Event | None) -> Contention | None:
    return Contention(**{key: event[key] for key in Contention.model_fields if key in event}) if event else None


def _of_journal(events: Sequence[Event], folder: Path, config: EffectiveConfig, chip: Chip) -> dict[str, Any]:
    """What a journal says of its search."""
    whole = [event for event in events if event["event"] != CORRUPT]
    last = {event["event"]: event for event in whole}
    trials = trials_of(whole, folder)
    seconds = sum(each for _, each in segments(whole))
    examined = last.get("examined", {})
    error = None if examined.get("accuracy") is None else 1.0 - examined["accuracy"]
    score = score_of(trials, seconds, error)
    devices = max((event["devices"] for event in whole if event["event"] == "driver_begin"), default=1)
    identity, held_out = (
        Identity.model_validate(each["dataset"]) if each and each.get("dataset") else None
        for each in (last.get("data"), examined)
    )
    return {
        "search_seconds": seconds,
        "drivers": len(segments(whole)),
        "ended": "search_end" in last,
        "end_reason": last["search_end"]["reason"] if "search_end" in last else None,
        "trials": tuple(trials),
        "examined": examined.get("trial"),
        "held_out_accuracy": examined.get("accuracy"),
        "held_out_reason": examined.get("reason"),
        "held_out": held_out,
        "dataset": identity,
        "score": score,
        "marks": tuple(marks_of(trials, seconds, config.mark_seconds, config.first_mark)),
        "flops": _flops(config, trials),
        "utilisation": _utilisation(chip, score.honest, devices),
        "training_share": _share(sum(trial.train_seconds for trial in trials), seconds * devices),
        "generation_share": _share(
            sum(trial.generated_seconds for trial in trials), sum(_lasted(trial) for trial in trials)
        ),
        "journal": str(folder / FILE),
        "journal_head": digest_of(whole[-1]) if whole else None,
        "faults": tuple(faults(events)),
    }


def trials_of(events: Iterable[Event], folder: Path) -> list[TrialRecord]:
    """All trials that a journal speaks of, by number. Their logs, in `folder`, are held against their digests."""
    since, host, listed = _Elapsed(), "", dict[int, tuple[Event, float, str]]()
    done = dict[int, TrialRecord]()
    for event in events:
        moment = since(event)
        if event["event"] == "driver_begin":
            host = event["host"]["name"]
        elif event["event"] == "trial_begin":
            listed[event["trial"]] = (event, moment, host)
            done[event["trial"]] = _trial(Trial(event), moment, None, host, True, since)
        elif event["event"] == "trial_end" and event["trial"] in listed:
            begun, began, where = listed[event["trial"]]
            trial = Trial(begun, event)
            intact = event["log_sha256"] is None or digest_of_log(trial.left(folder)) in (
                event["log_sha256"],
                None,  # the evidence is not kept for ever
            )
            done[event["trial"]] = _trial(trial, began, moment, where, intact, since)
    return [done[number] for number in sorted(done)]


class _Elapsed:
    """Seconds of searching up to an event, over all drivers: the time between two of them is no time of the search."""

    def __init__(self) -> None:
        self._begin: Event | None = None
        self._before = self._reached = 0.0

    def __call__(self, event: Mapping[str, Any]) -> float:
        if event.get("event") == "driver_begin":
            self._before, self._begin = self._reached, dict(event)
        if self._begin is None:
            return 0.0
        moment = self._before + seconds_between(self._begin, dict(event))
        if event.get("event") not in (None, "examined"):
            self._reached = max(self._reached, moment)
        return moment


def _trial(trial: Trial, began: float, ended: float | None, host: str, intact: bool, since: _Elapsed) -> TrialRecord:
    begun, end = trial.begun, trial.ended or {}
    counted, energy, per_image = end.get("counted"), end.get("energy", {}), begun["per_image"]
    return TrialRecord(
        number=trial.number,
        round=begun["round"],
        attempts=begun["attempt"],
        status=end.get("status", "none"),
        reason=end.get("reason"),
        parent=begun["parent"],
        operations=tuple(begun["operations"]),
        hyperparameters=begun["hyperparameters"],
        sampled=begun["sampled"],
        accuracy=trial.accuracy,
        best_epoch=end.get("best_epoch"),
        stopped_early=end.get("stopped_early"),
        epochs=tuple(_epoch(epoch, since) for epoch in end.get("epochs", ())),
        parameters=per_image["parameters"],
        forward_flops=per_image["forward"],
        training_flops=per_image["training"],
        compatible_forward_flops=per_image["compatible_forward"],
        compatible_training_flops=per_image["compatible_training"],
        counted=(counted["forward"], counted["training"]) if counted else None,
        dtypes=tuple(end.get("dtypes", ())),
        checks=tuple(end.get("checks", ())),
        began=began,
        ended=ended,
        train_seconds=end.get("train_seconds", 0.0),
        generated_seconds=begun["generated_seconds"],
        energy_joules=energy.get("joules"),
        energy_reason=energy.get("reason"),
        device=begun["device"],
        host=host,
        log_intact=intact,
    )


def _epoch(epoch: Mapping[str, Any], since: _Elapsed) -> EpochRecord:
    fields = {key: epoch[key] for key in ("images", "evaluated", "accuracy", "loss", "seconds")}
    return EpochRecord(ended=since({"clock": epoch["clock"]}), **fields)


def _lasted(trial: TrialRecord) -> float:
    return max(0.0, trial.ended - trial.began) if trial.ended is not None else 0.0


def _flops(config: EffectiveConfig, trials: Sequence[TrialRecord]) -> Flops:
    """Of a step on an image with the seed network, as declared, and as torch counted it."""
    seeds = [trial.counted for trial in trials if trial.parent is None and trial.counted and not trial.sampled]
    return Flops(declared=config.flops, counted=float(seeds[0][1]) if seeds else None)


def _utilisation(chip: Chip, score: float | None, devices: int) -> Utilisation:
    """The honest score over all devices' peaks."""
    if chip.peak is None:
        return Utilisation(reason=chip.peak_missing)
    if not score:
        return Utilisation(reason="nothing was measured")
    return Utilisation(mfu=score / (chip.peak.flops_per_second * devices))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
