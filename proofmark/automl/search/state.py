"""What a journal says of a search so far: trials that ended, those to be run again, and the time that has passed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofmark.record.events import Event, seconds_between


@dataclass(frozen=True)
class Trial:
    """One trial: how it began last, and how it ended, None if it has not."""

    begun: Event
    ended: Event | None = None

    @property
    def number(self) -> int:
        """Counted from 0."""
        return int(self.begun["trial"])

    @property
    def accuracy(self) -> float | None:
        """On the search's split, of one that is finished."""
        if self.ended is None or self.ended["status"] != "finished":
            return None
        return float(self.ended["accuracy"])

    @property
    def folder(self) -> str:
        """Where its files are, within the search's folder; a later attempt has one of its own."""
        attempt = self.begun["attempt"]
        return f"trials/{self.number:05d}" + (f".{attempt}" if attempt > 1 else "")

    def left(self, folder: Path) -> Path:
        """What its process left, in the folder of its search."""
        return folder / self.folder / "noderank0"


@dataclass(frozen=True)
class State:
    """All trials by number, and how long the search has gone on before now."""

    trials: dict[int, Trial]
    seconds: float
    drivers: int
    ended: str | None

    @classmethod
    def of(cls, events: Iterable[Event]) -> State:
        """What a whole journal says."""
        trials, ended, drivers = dict[int, Trial](), None, 0
        listed = list(events)
        for event in listed:
            kind = event["event"]
            if kind == "driver_begin":
                drivers, ended = drivers + 1, None
            elif kind == "trial_begin":
                trials[event["trial"]] = Trial(event)
            elif kind == "trial_end" and event["trial"] in trials:
                trials[event["trial"]] = Trial(trials[event["trial"]].begun, event)
            elif kind == "search_end":
                ended = event["reason"]
        return cls(trials, sum(seconds for _, seconds in segments(listed)), drivers, ended)

    def finished(self) -> list[Trial]:
        """Those that may be parents."""
        return [trial for trial in self.trials.values() if trial.accuracy is not None]

    def open(self) -> list[Trial]:
        """Those that were begun and have no end: their driver died."""
        return [trial for trial in self.trials.values() if trial.ended is None]

    def best(self) -> Trial | None:
        """The one with the highest accuracy on the search's split; of equals the first."""
        return max(self.finished(), key=lambda trial: (trial.accuracy, -trial.number), default=None)

    def failed_in_a_row(self) -> list[Trial]:
        """The last trials that ended, as far as they failed."""
        ended = [trial for trial in self.trials.values() if trial.ended is not None]
        ended.sort(key=lambda trial: trial.ended["clock"] if trial.ended else 0)
        row = list[Trial]()
        for trial in reversed(ended):
            if trial.ended is None or trial.ended["status"] != "failed":
                break
            row.append(trial)
        return row


def segments(events: Sequence[Event]) -> list[tuple[Event, float]]:
    """Of each driver the event that it began with, and the seconds to its last one."""
    found = list[tuple[Event, float]]()
    for event in events:
        if event["event"] == "driver_begin":
            found.append((event, 0.0))
        elif found and event["event"] != "examined":
            begin, _ = found[-1]
            found[-1] = (begin, seconds_between(begin, event))
    return found


def hyperparameters(trial: Trial) -> dict[str, Any]:
    """Those of a trial, as its journal has them."""
    return dict(trial.begun["hyperparameters"])
