"""The part of one rank's events that a record needs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from proofmark.record.events.log import CORRUPT, NAMED, Event
from proofmark.record.parts import Check
from proofmark.training.logs.downsampled import Downsampled
from proofmark.training.outcome.checks import EVENT as CHECK
from proofmark.training.outcome.checks import RANKS
from proofmark.training.outcome.rank_event_types import RANK_KINDS
from proofmark.training.outcome.record import Epoch
from proofmark.wall.isolation import Isolation, weakest

ISOLATED = "isolated"
"""The event by which a rank says how it is kept from the rest, before others' code runs in it."""

ONCE = ("dataset", "weights", "model", "flops")
"""What a rank says before a vendor's code has run in it, or is held to afterwards: it stands as it was said first."""

_noted = itemgetter("step", "epoch", "samples", "time", "learning_rate")
"""What is noted of a step, but for its loss, in the order of a NotedStep."""


@dataclass
class RankLog:
    """The part of one rank's events that a record needs: the last of each kind, and rank 0's series, of bounded
    length."""

    rank: int
    node: int = 0
    last: dict[str, Event] = field(default_factory=dict)
    evaluations: Downsampled[Event] = field(default_factory=Downsampled)
    losses: Downsampled[tuple[int, float | None]] = field(default_factory=Downsampled)
    notes: Downsampled[tuple[Any, ...]] = field(default_factory=Downsampled)
    epochs: Downsampled[Epoch] = field(default_factory=Downsampled)
    checkpoints: Downsampled[int] = field(default_factory=Downsampled)
    computed: Downsampled[tuple[int, int, float]] = field(default_factory=Downsampled)
    checks: dict[str, Check] = field(default_factory=dict)
    isolation: Isolation | None = None
    corrupt: int = 0
    _epoch: Event | None = None
    _damaged: list[str] = field(default_factory=list)

    def take(self, events: Iterable[Event]) -> RankLog:
        """Read all events."""
        for event in events:
            kind = event["event"]
            if kind == CORRUPT:
                self._note(event["what"])
                continue
            if kind not in RANK_KINDS:  # of a later version, or made up: of any number of kinds
                continue
            if kind in ONCE and kind in self.last:
                self._note(f"rank {self.rank} says another time what its {kind} is")
                continue
            if kind == ISOLATED:
                isolation = Isolation.model_validate(event["isolation"])
                self.isolation = weakest(filter(None, (self.isolation, isolation)))
            self.last[kind] = event
            if kind == CHECK:
                self._hold(event)
            if self.rank == 0:
                self._follow(kind, event)
        return self

    def reached(self) -> Event | None:
        """The rank's last evaluation; the confirmation in the case's own model in its place, where there was one."""
        evaluated, confirmed = self.last.get("evaluation"), self.last.get("confirmation")
        same = evaluated and confirmed and confirmed["step"] == evaluated["step"]
        return confirmed if same else evaluated

    def _note(self, damage: str) -> None:
        self.corrupt += 1
        self._damaged += [damage] if self.corrupt <= NAMED else []

    def _follow(self, kind: str, event: Event) -> None:
        if kind in ("steps", "pace"):
            self.computed.extend([(event["step"], event["samples"], event["compute_seconds"])])
        if kind == "steps":
            self.losses.extend(list(enumerate(event["losses"], event["first"])))
            self.notes.extend([(*_noted(event), event["losses"][-1])])
        elif kind == "evaluation":
            self.evaluations.extend([event])
        elif kind in ("epoch_begin", "train_end"):
            self._turn_epoch(event)
        elif kind == "checkpoint":
            self.checkpoints.extend([event["step"]])

    def _hold(self, event: Event) -> None:
        """Keep a check: one that is made twice must pass twice. A check of a kind that no rank makes is ignored."""
        check = Check.read(event)
        if check.name not in RANKS:
            return
        before = self.checks.get(check.name)
        if before is None or before.passed:
            self.checks[check.name] = check

    def _turn_epoch(self, event: Event) -> None:
        """An epoch lasts until the next begins or training ends."""
        if self._epoch is not None:
            began, ended = self._epoch["time"], event["time"]
            self.epochs.extend([Epoch(number=self._epoch["epoch"], began=began, ended=ended)])
        self._epoch = event if event["event"] == "epoch_begin" else None

    def damaged(self) -> Iterator[str]:
        """Each damaged line, the first of them by name."""
        yield from self._damaged
        yield from itertools.repeat("and more", self.corrupt - len(self._damaged))

    @property
    def walled(self) -> bool:
        """Whether the rank was behind a wall from its beginning on."""
        return self.isolation is not None and self.isolation.kind == "wall"

    def totals(self) -> Event | None:
        """All parts of the clock as last written, None before training began."""
        written = [self.last[kind] for kind in ("steps", "evaluation", "train_end") if kind in self.last]
        return max(written, key=lambda event: event["clock"], default=None) if "train_begin" in self.last else None

    def window(self) -> tuple[float, float] | None:
        """First and last moment of training, seconds since the epoch; None if it did not come to its end."""
        begin, end = self.last.get("train_begin"), self.ended()
        return (begin["time"], end) if begin and end is not None else None

    def ended(self) -> float | None:
        """When training ended, seconds since the epoch."""
        end = self.last.get("train_end")
        return float(end["time"]) if end else None

    def began(self) -> int | None:
        """The step that training began after: of one that was resumed, its checkpoint's. None before it is known."""
        begin = self.last.get("resumed", {}).get("step", self.last.get("train_begin", {}).get("steps"))
        return None if begin is None else int(begin)

    def trained(self) -> int:
        """Samples that all ranks trained on in this process's time; 0 if training did not come to its end."""
        begin, end = self.last.get("train_begin"), self.last.get("train_end")
        return int(end["samples"] - begin["samples"]) if begin and end else 0

    def seconds(self, part: str) -> float | None:
        """A part of the clock, as last written."""
        totals = self.totals()
        return None if totals is None else float(totals[f"{part}_seconds"])
