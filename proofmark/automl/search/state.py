"""What a journal says of a search so far: trials that ended, those to be run again, and the time that has passed."""

from __future__ import annotations

import copy
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofmark.record.events.log import Event, seconds_between

NODE = "noderank0"
"""The folder of a trial's process within its own."""


class Trial:
    """One trial: how it began last, and how it ended, None if it has not.

    Both events are kept packed, since a search remembers all its trials: a network like ResNet-50 takes 2 kB so, and
    200 kB otherwise.

    Attributes:
        number: counted from 0.
        round: counted from 0.
        parent: the number of its parent, None of a seed.
        study: its number in the hyper-parameters' study.
        accuracy: on the search's split, of one that is finished.
        flops: that it computed, 0 until it has ended.
    """

    __slots__ = ("_begun", "_ended", "_per_image", "accuracy", "attempt", "flops", "number", "parent", "round", "study")

    def __init__(self, begun: Event, ended: Event | None = None) -> None:
        self.number, self.attempt, self.round = int(begun["trial"]), int(begun["attempt"]), int(begun["round"])
        self.parent: int | None = begun["parent"]
        self.study = int(begun["study"])
        self._per_image = {name: begun["per_image"][name] for name in ("training", "forward")}
        self._begun = _packed(begun)
        self._end(ended)

    def end(self, ended: Event) -> Trial:
        """The same trial, now that it has ended."""
        trial = copy.copy(self)
        trial._end(ended)
        return trial

    def _end(self, ended: Event | None) -> None:
        finished = ended is not None and ended["status"] == "finished"
        self.accuracy: float | None = ended["accuracy"] if ended is not None and finished else None
        self.flops = flops_of(self._per_image, ended["epochs"]) if ended is not None else 0
        self._ended = None if ended is None else _packed(ended)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and (self.begun, self.ended) == (other.begun, other.ended)

    __hash__ = None  # type: ignore[assignment]

    @property
    def begun(self) -> Event:
        """The event that it began with."""
        return _unpacked(self._begun)

    @property
    def ended(self) -> Event | None:
        """The event that it ended with."""
        return None if self._ended is None else _unpacked(self._ended)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._ended is not None

    @property
    def folder(self) -> str:
        """Where its files are, within the search's folder; a later attempt has one of its own."""
        return folder_of(self.number, self.attempt)

    def left(self, folder: Path) -> Path:
        """The folder with what its process left, given that of its search."""
        return folder / self.folder / NODE


@dataclass
class State:
    """All trials by number, and for how long the search has been running.

    Attributes:
        round: the latest that a trial was of.
        over: those that have ended, in that order.
        before: how many had when the journal was read.
        flops: that those computed which came to a good end.
    """

    trials: dict[int, Trial] = field(default_factory=dict)
    seconds: float = 0.0
    drivers: int = 0
    round: int = 0
    ended: str | None = None
    over: list[Trial] = field(default_factory=list)
    before: int = 0
    flops: float = 0.0
    _finished: list[Trial] = field(default_factory=list)
    _without: dict[int, Trial] = field(default_factory=dict)
    _best: Trial | None = None

    @classmethod
    def of(cls, events: Iterable[Event]) -> State:
        """The state that a whole journal describes."""
        state, since = cls(), Elapsed()
        for event in events:
            since(event)
            kind = event["event"]
            if kind == "driver_begin":
                state.ended = None
            elif kind == "trial_begin":
                state.put(Trial(event))
            elif kind == "trial_end" and event["trial"] in state.trials:
                state.put(state.trials[event["trial"]].end(event))
            elif kind == "search_end":
                state.ended = event["reason"]
        state.seconds, state.drivers, state.before = since.seconds, since.drivers, len(state.over)
        return state

    def put(self, trial: Trial) -> None:
        """Take a trial that was begun, maybe once more, or that has ended."""
        self.trials[trial.number] = trial
        self._without[trial.number] = trial
        self.round = max(self.round, trial.round)
        if not trial.over:
            return
        self.over.append(trial)
        if trial.accuracy is None:
            return
        self.flops += trial.flops
        del self._without[trial.number]
        self._finished.append(trial)
        if self._best is None or _rank(trial) > _rank(self._best):
            self._best = trial

    @property
    def parents(self) -> int:
        """How many trials may be parents."""
        return len(self._finished)

    def finished(self) -> Sequence[Trial]:
        """Trials that may be parents, in the order in which they ended."""
        return tuple(self._finished)

    def without_result(self) -> Sequence[Trial]:
        """Trials that run, and trials that failed."""
        return tuple(self._without.values())

    def open(self) -> list[Trial]:
        """Trials that were begun and have no end: their driver died."""
        return [trial for trial in self._without.values() if not trial.over]

    def best(self) -> Trial | None:
        """The trial with the highest accuracy on the search's split; of equals the first."""
        return self._best


class Elapsed:
    """Seconds of searching up to an event, over all drivers: the time between two of them is no time of the search.

    Attributes:
        seconds: up to the last event so far, or the search's end: the examination of the best network is not of it.
        drivers: that have begun so far.
    """

    def __init__(self) -> None:
        self._begin: Event | None = None
        self._over = False
        self._before = self._data_seconds = self.seconds = 0.0
        self.drivers = 0

    def __call__(self, event: Mapping[str, Any]) -> float:
        """Seconds of searching up to an event."""
        if event.get("event") == "driver_begin":
            self._before, self._begin = self.seconds, dict(event)
            self.drivers, self._over = self.drivers + 1, False
        if self._begin is None:
            return 0.0
        moment = self._before + seconds_between(self._begin, dict(event))
        if event.get("event") is not None and not self._over:
            self.seconds = max(self.seconds, moment)
        if event.get("event") == "data":
            self._data_seconds = moment
        if event.get("event") == "examined" and "data_items" not in event:  # an older one: its `data` was of the search
            self.seconds = max(self.seconds, self._data_seconds)
        self._over |= event.get("event") == "search_end"
        return moment


def flops_of(per_image: Mapping[str, Any], epochs: Iterable[Mapping[str, Any]]) -> int:
    """What was computed in epochs of a network with those FLOPs per image."""
    trained, evaluated = per_image["training"], per_image["forward"]
    return sum(epoch["images"] * trained + epoch["evaluated"] * evaluated for epoch in epochs)


def left_of(folder: Path, begun: Event) -> Path:
    """What a trial's process left, in the folder of its search; by the event that it began with."""
    return folder / folder_of(begun["trial"], begun["attempt"]) / NODE


def hyperparameters(trial: Trial) -> dict[str, Any]:
    """The hyper-parameters of a trial, as its journal has them."""
    return dict(trial.begun["hyperparameters"])


def folder_of(number: int, attempt: int) -> str:
    """Where the files of a trial's attempt are, within the search's folder."""
    return f"trials/{number:05d}" + (f".{attempt}" if attempt > 1 else "")


def _rank(trial: Trial) -> tuple[float, int]:
    return trial.accuracy or 0.0, -trial.number


def _packed(event: Event) -> bytes:
    return zlib.compress(json.dumps(event, separators=(",", ":")).encode(), 1)


def _unpacked(packed: bytes) -> Event:
    event: Event = json.loads(zlib.decompress(packed))
    return event
