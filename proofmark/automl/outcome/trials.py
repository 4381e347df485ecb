"""Records of a search's trials, made of its journal's events as they come: its networks need not fit into memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from proofmark.automl.logs.event_types import TRIAL_EVENTS
from proofmark.automl.logs.trial_log import digest_of_log, outcome
from proofmark.automl.outcome.record import EpochRecord, TrialRecord
from proofmark.automl.search.state import Elapsed, left_of
from proofmark.automl.trial.spec import LOG
from proofmark.record.events.log import CORRUPT, Event, read_events

GRAPH = "graph"

APART = 5.0
"""Seconds by which two monotonic clocks differ at least if they are of two hosts: the time of day may be set anew."""


class Trials:
    """All trials that a journal speaks of. Their logs, in `folder`, are held against their digests.

    Attributes:
        since: seconds of searching up to an event.
    """

    def __init__(self, folder: Path) -> None:
        self.since = Elapsed()
        self._folder, self._host = folder, ""
        self._open = dict[int, tuple[Event, float, str]]()
        self._done = dict[int, TrialRecord]()

    def take(self, event: Event) -> None:
        """The journal's next event."""
        moment = self.since(event)
        if event["event"] == "driver_begin":
            self._host = event["host"]["name"]
        elif event["event"] == "trial_begin":
            begun = {key: value for key, value in event.items() if key != GRAPH}
            self._open[event["trial"]] = begun, moment, self._host
            self._done.pop(event["trial"], None)
        elif event["event"] == "trial_end" and event["trial"] in self._open:
            begun, began, where = self._open.pop(event["trial"])
            self._done[event["trial"]] = self._record(begun, event, began, moment, where, self._intact(begun, event))

    def look(self, clock: int) -> None:
        """Update the trials that have not ended from their logs, as of `clock`: ns of this machine's monotonic
        clock."""
        moment = self.since({"event": "now", "clock": clock})
        for number, (begun, began, where) in self._open.items():
            left = left_of(self._folder, begun)
            come = outcome(left, begun["epochs"], False, None, _ahead(left, begun)) | {
                "status": "running",
                "reason": None,
            }
            self._done[number] = self._record(begun, come, began, moment, where, True)

    def records(self) -> list[TrialRecord]:
        """All trials, by number; one that has not ended has no end in its record either."""
        endless = {
            number: self._record(begun, {}, began, None, where, True)
            for number, (begun, began, where) in self._open.items()
        }
        every = endless | self._done
        return [every[number] for number in sorted(every)]

    def _intact(self, begun: Event, event: Event) -> bool:
        """Whether a trial's log is the one that its driver read. The log need not be kept, but a finished trial must
        have had one; of one that failed the driver may not have been able to read it."""
        found, kept = None, event["log_sha256"]
        with contextlib.suppress(OSError):
            found = digest_of_log(left_of(self._folder, begun))
        return event["status"] != "finished" if kept is None else found in (kept, None)

    def _record(
        self, begun: Event, end: Mapping[str, Any], began: float, ended: float | None, driver_host: str, intact: bool
    ) -> TrialRecord:
        """A trial's record. Its host is the one that its own log names, or else its driver's."""
        counted, energy, per_image = end.get("counted"), end.get("energy", {}), begun["per_image"]
        data = end["data"] or {"train": "", "evaluated": ""} if "data" in end else {}
        return TrialRecord(
            number=begun["trial"],
            round=begun["round"],
            attempts=begun["attempt"],
            status=end.get("status", "none"),
            reason=end.get("reason"),
            parent=begun["parent"],
            operations=tuple(begun["operations"]),
            hyperparameters=begun["hyperparameters"],
            sampled=begun["sampled"],
            accuracy=end["accuracy"] if end.get("status") == "finished" else None,
            best_epoch=end.get("best_epoch"),
            stopped_early=end.get("stopped_early"),
            asked=begun.get("epochs"),
            epochs=tuple(self._epoch(epoch, began, ended) for epoch in end.get("epochs", ())),
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
            host=end.get("host") or driver_host,
            log_intact=intact,
            trained_on=data.get("train"),
            evaluated_on=data.get("evaluated"),
        )

    def _epoch(self, epoch: Mapping[str, Any], began: float, over: float | None) -> EpochRecord:
        """An epoch, which ended while its trial lasted, whatever moment a rank gives for that."""
        fields = {key: epoch[key] for key in ("images", "evaluated", "accuracy", "loss", "seconds")}
        ended = max(began, self.since({"clock": epoch["clock"]}))
        return EpochRecord(ended=ended if over is None else min(ended, over), **fields)


def _ahead(left: Path, begun: Event) -> float:
    """Seconds by which the monotonic clock of a running trial's host is ahead of its driver's, by the time of day."""
    first = next((event for event in read_events(left / LOG, TRIAL_EVENTS) if event["event"] != CORRUPT), None)
    if first is None:
        return 0.0
    ahead = float((first["clock"] - begun["clock"]) / 1e9 - (first["time"] - begun["time"]))
    return ahead if abs(ahead) > APART else 0.0


def trials_of(events: Iterable[Event], folder: Path) -> list[TrialRecord]:
    """All trials of a journal, by number."""
    trials = Trials(folder)
    for event in events:
        trials.take(event)
    return trials.records()
