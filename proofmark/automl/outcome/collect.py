"""From a search's journal to its record. The score is a pure function of the journal's events."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.automl.logs.event_types import SESSION_EVENTS
from proofmark.automl.outcome.conditions import Drivers
from proofmark.automl.outcome.figures import figures
from proofmark.automl.outcome.record import AutoMLRecord, Items, TrialRecord
from proofmark.automl.outcome.scoring import marks_of, score_of
from proofmark.automl.outcome.trials import Trials
from proofmark.automl.outcome.unfinished import judged_so_far
from proofmark.automl.outcome.verdict import judge
from proofmark.automl.search.journal import FILE, Chain, read_journal
from proofmark.process.wall_clock import now
from proofmark.record.begun import envelope_of, how_far
from proofmark.record.events.log import CORRUPT, LOG_FILE, NAMED, Event, read_events, seconds_between
from proofmark.record.events.types import fields_of
from proofmark.record.integrity.chain import changes
from proofmark.record.parts import FIRST, Check, Contention, Flops, Identity, Seal, Utilisation
from proofmark.rules.config import EffectiveConfig
from proofmark.wall.isolation import Isolation, weakest

UNREPORTED = Isolation.none("a trial that trained to its end did not say what is around it")

FOLDER = "search"
"""The folder with journal, study and trials, within the session's folder of the case."""


def collect(
    run_dir: Path, begun: Event | None = None, going_on: bool = False, seal: Seal | None = None
) -> AutoMLRecord:
    """The judged record of the search of a session, whole or not.

    Args:
        run_dir: the session's folder of the case.
        begun: the event that it began with, for a log that has lost it.
        going_on: it is being searched by this machine; trials that run are taken for as far as they have come.
        seal: what the session's log is by its own word; None for one that nobody sealed.

    Raises:
        ValueError: nothing says what was searched; or the search is an earlier session's, and not there any more.
    """
    read = list(read_events(run_dir / LOG_FILE, SESSION_EVENTS))
    last = {event["event"]: event for event in read}
    begin = last.get("run_begin", begun)
    if begin is None:
        raise ValueError(f"{run_dir / 'events.jsonl'} does not say what was run")
    config = EffectiveConfig.from_dict(begin["config"])
    journal_folder = Path(last["search"]["folder"]) if "search" in last else None
    its_own = begun is not None or not last["search"].get("resumed") if journal_folder else False
    journal = _journal_of(run_dir, journal_folder, its_own) if journal_folder else None
    if journal and going_on:
        journal.look()
    damaged = [event["what"] for event in read if event["event"] == CORRUPT]
    whole = [event for event in read if event["event"] != CORRUPT]
    record = AutoMLRecord(
        **envelope_of(begin, config),
        **{name: getattr(config, name) for name in ("metric", "target", "rankable")},
        devices=begin["devices"],
        trials_among_others=begin.get("trials_among_others", False),
        adapted=tuple(begin["adapted"]),
        seconds=seconds_between(begin, {"clock": time.perf_counter_ns()} if going_on else whole[-1]) if whole else None,
        as_of=now() if going_on else None,
        unsupported=begin.get("unsupported"),
        flops=None,
        **how_far(last),
        failure=last["search_failed"]["reason"] if "search_failed" in last else None,
        contention=_contention(last.get("contention")),
        log=seal,
        changed=tuple(changes(run_dir / LOG_FILE, seal)) if seal else (),
        corrupt_lines=len(damaged) + (journal.damaged if journal else 0),
        damaged=(*damaged, *(journal.named if journal else ()))[:NAMED],
    )
    if journal and journal_folder:
        record = _with_journal(record, journal, str(journal_folder / FILE), config, last, begin)
    verdict = judged_so_far(record) if going_on else judge(record)
    return record.model_copy(update={"verdict": verdict}).with_figures(figures(record))


def _with_journal(
    record: AutoMLRecord,
    journal: _Journal,
    path: str,
    config: EffectiveConfig,
    last: Mapping[str, Event],
    begin: Event,
) -> AutoMLRecord:
    """A session's record, with what its search came to."""
    resumed = last["search"].get("resumed", False)
    found = _of_journal(journal, config)
    is_one = not resumed or journal.drivers.are_one(begin)
    told = "trials_among_others" in begin  # an older session's has its own, which spans the judging too
    if is_one and (resumed or told) and journal.drivers.contention is not None:
        found["contention"] = _contention(journal.drivers.contention)
    if resumed:  # even if it was over by then, a session under other conditions is another one
        found["drivers"] = 1 if is_one else max(2, found["drivers"])
    found |= {"journal": path, "ended": found["ended"] and "run_end" in last}
    if journal.isolation:
        found["isolation"] = record.isolation | {"trials": journal.isolation}
    found["adapted"] = tuple(dict.fromkeys([*record.adapted, *journal.adapted]))  # whatever it said to the session
    whole = record.model_copy(update=found)
    return whole.model_copy(update={"utilisation": _utilisation(whole, journal.on_average(journal.devices))})


def _journal_of(run_dir: Path, journal_folder: Path, its_own: bool) -> _Journal:
    """The journal that a search has left. The session that ran it, or has it in its own folder, takes what there is.

    Raises:
        ValueError: it is an earlier session's, and not there any more: every figure would be said to be another.
    """
    folder = _there(run_dir, journal_folder)
    if not (its_own or (folder / FILE).is_file()):
        raise ValueError(f"it resumed an earlier session's search, whose journal is missing: {journal_folder / FILE}")
    return _Journal(folder)


def _there(run_dir: Path, journal_folder: Path) -> Path:
    """Where a search lies: beside its session's log, wherever that was brought since, unless it was resumed."""
    own = run_dir / FOLDER
    return own if own.is_dir() else journal_folder


class _Journal:
    """A journal, read once from its beginning.

    Attributes:
        last: of each kind of event the last one.
        devices, places: that each driver had, and trials at a time, with the seconds of searching before it.
        damaged: lines; `named` are the first of them.
        isolation: the weakest that a trial had, None where no trial has told yet.
        adapted: steps of training that some trial's ranks did the vendor's way.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.trials, self.chain, self.drivers = Trials(folder), Chain(), Drivers()
        self.last = dict[str, Event]()
        self.devices, self.places = list[tuple[int, float]](), list[tuple[int, float]]()
        self.damaged, self.named = 0, list[str]()
        self.isolation: Isolation | None = None
        self.adapted = dict[str, None]()
        for event in read_journal(self.path):
            self._take(event)

    def look(self) -> None:
        """Update the trials that still run; nothing to do once the search has ended."""
        if "driver_begin" in self.last and "search_end" not in self.last:
            self.trials.look(time.perf_counter_ns())

    def _take(self, event: Event) -> None:
        self.chain.take(event)
        if event["event"] == CORRUPT:
            self.damaged += 1
            self.named += [event["what"]] if len(self.named) < NAMED else []
            return
        self.trials.take(event)
        self.drivers.take(event)
        self.last[event["event"]] = event
        if event["event"] == "trial_end":
            self._isolated(event)
            self.adapted |= dict.fromkeys(event.get("adapted", ()))
        if event["event"] == "driver_begin":
            self.last.pop("search_end", None)
            self.devices.append((event["devices"], self.trials.since.seconds))
            places = event["places"] if "places" in event else event["devices"]
            self.places.append((places, self.trials.since.seconds))

    def on_average(self, had: Sequence[tuple[int, float]]) -> float:
        """What drivers had, on average over the seconds of the search, to which one that only judges adds none.

        It is reckoned from the most that one had, so as to be exact where all had the same.
        """
        whole = self.trials.since.seconds
        ends = [*(before for _, before in had[1:]), whole]
        lasted = [(number, end - before) for (number, before), end in zip(had, ends, strict=False) if end > before]
        most = max((number for number, _ in lasted), default=1)
        lacked = sum((most - number) * seconds for number, seconds in lasted)
        return most - lacked / whole if lacked else most

    def _isolated(self, event: Event) -> None:
        """Keep the weakest isolation that a trial reported; one that failed may have ended before it reported any."""
        claimed = event.get("isolation")
        kept = Isolation.model_validate(claimed) if claimed else UNREPORTED if event["status"] == "finished" else None
        self.isolation = weakest(filter(None, (self.isolation, kept)))


def _contention(event: Event | None) -> Contention | None:
    return Contention(**fields_of(event, Contention)) if event else None


def _of_journal(journal: _Journal, config: EffectiveConfig) -> dict[str, Any]:
    """Fields of the record that follow from the journal."""
    last, trials = journal.last, journal.trials.records()
    seconds = journal.trials.since.seconds
    examined = last.get("examined", {})
    data_items = examined.get("data_items") or {}
    items = Items(data_items.get("train"), data_items.get("search"))
    error = None if examined.get("accuracy") is None else 1.0 - examined["accuracy"]
    score = score_of(trials, seconds, error, items)
    identity, held_out, chosen_on = (
        Identity.model_validate(each) if each else None
        for each in (last.get("data", {}).get("dataset"), examined.get("dataset"), examined.get("chosen_on"))
    )
    init_models = [Identity.model_validate(each) for each in last.get("init_models", {}).get("networks", ())]
    return {
        "search_seconds": seconds,
        "drivers": journal.trials.since.drivers,
        "ended": "search_end" in last,
        "end_reason": last["search_end"]["reason"] if "search_end" in last else None,
        "trials": tuple(trials),
        "init_models": tuple(init_models),
        "examined": examined.get("trial"),
        "held_out_accuracy": examined.get("accuracy"),
        "held_out_reason": examined.get("reason"),
        "held_out": held_out,
        "chosen_on": chosen_on,
        "examination": Check(**examined["check"]) if examined.get("check") else None,
        "train_items": items.train,
        "search_items": items.search,
        "dataset": identity,
        "score": score,
        "marks": tuple(marks_of(trials, seconds, config.mark_seconds, config.first_mark, items)),
        "flops": _flops(None if init_models else config.flops, trials),
        "training_share": _share(sum(trial.trained for trial in trials), seconds * journal.on_average(journal.places)),
        "generation_share": _share(
            sum(trial.generated_seconds for trial in trials), sum(trial.lasted for trial in trials)
        ),
        "journal_head": journal.chain.head if journal.chain.head != FIRST else None,
        "faults": tuple(journal.chain.faults),
    }


def _flops(declared: float | None, trials: Sequence[TrialRecord]) -> Flops:
    """FLOPs of a training step on one image, with the network that the search began with: as declared, and as torch
    counted them.

    For an init model the closed form takes the place of the case's declaration.
    """
    seeds = [trial for trial in trials if trial.parent is None and not trial.sampled]
    seed = next((trial for trial in seeds if trial.counted), seeds[0] if seeds else None)  # there may be several
    counted = float(seed.counted[1]) if seed and seed.counted else None
    own = float(seed.training_flops) if seed else 0.0
    return Flops(declared=own if declared is None else declared, counted=counted)


def _utilisation(record: AutoMLRecord, devices: float) -> Utilisation:
    """MFU: the score by honest FLOPs over the peaks of all devices, on average over the search."""
    if record.chip.peak is None:
        return Utilisation(reason=record.chip.peak_missing)
    if record.score is None or not record.score.honest:
        return Utilisation(reason="nothing was measured")
    if record.was_spread:
        return Utilisation(reason="trials ran on other machines than the session's, whose chips nobody saw")
    return Utilisation(mfu=record.score.honest / (record.chip.peak.flops_per_second * devices))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
