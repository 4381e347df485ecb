"""How long a training took by the agent's clock, or the session's: what the rank says of its own is held against it."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from time import monotonic  # by name, before a vendor's monitor code is there: a changed module changes nothing
from typing import Any, NamedTuple

from proofmark.monitoring.contention import ContentionMeter
from proofmark.record.events.log import Event, EventLog
from proofmark.training.logs.ranks.tail import Tail
from proofmark.training.outcome.event_types import CONTENTION, WATCHED

BEGIN, EVALUATION, END = "train_begin", "evaluation", "train_end"
"""What is looked for in the rank's log."""

EVERY = 0.1
"""Seconds between two looks: between two a training may have begun or ended."""

_Window = tuple[float, float]


class _Look(NamedTuple):
    """What the rank had said, in bytes; when that was asked and known, and what had been counted before and after."""

    before: Any
    asked: float
    said: int
    known: float
    after: Any


class Stopwatch:
    """Looks at what a rank says now and then, and notes between which looks training began and ended.

    An event was said between the last look at which it was not, and the first at which it was, whenever its line comes
    into the log: the disk may stand still, or the thread that writes. However late a look comes on a busy machine, the
    seconds that training took lie between `least` and `most`. They last from the first beginning that the rank tells of
    to the last end, and nothing that it tells stops them.

    Attributes:
        weights: the digest of those with which it ended, as the rank told it with that end; None where it told none.
        steps: after which it ended, by the same word.
    """

    def __init__(
        self,
        path: Path,
        log: EventLog | None = None,
        clock: Callable[[], float] = monotonic,
        said: Callable[[], int] | None = None,
        count: Callable[[], Any] = lambda: None,
        on_begin: Callable[[Any], None] = lambda counts: None,
        on_end: Callable[[Any], None] = lambda counts: None,
    ) -> None:
        """Of the log in `path`.

        Args:
            path: that of the rank's log.
            log: the agent's own.
            clock: seconds.
            said: where in the log all ends that the rank has said by then, also what is not in it yet; if not given,
                what is in it.
            count: what is counted meanwhile.
            on_begin: gets what that was at the last look before training began.
            on_end: gets what it was at the first look after an evaluation, since that may be the last, or after an end
                without one, or after one that follows an end.
        """
        self._tail, self._log, self._clock = Tail(path), log, clock
        self._said, self._count = said or (lambda: _size(path)), count
        self._on_begin, self._on_end = on_begin, on_end
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._looks = [_Look(None, clock(), 0, clock(), None)]
        self._began: _Window | None = None
        self._evaluated: _Window | None = None
        self.least = self.most = 0.0
        self.ended = False
        self._meter: ContentionMeter | None = None
        self._metered = False
        self.weights: str | None = None
        self.steps = 0

    def run(self) -> None:
        """Look until it is stopped."""
        while not self._stopped.wait(EVERY):
            self.look()

    def stop(self) -> None:
        """Look a last time."""
        self._stopped.set()
        self.look()
        with self._lock:
            self._write_contention()

    def look(self) -> None:
        """Take note of what happened since the last look; where training has ended, write down how long it took."""
        with self._lock:
            self._note()
            self._write_contention()  # of a training that one look sees begin and end nothing was measured before
            seen: dict[str, tuple[_Window, Any]] = {}
            for event in self._tail.events(BEGIN, EVALUATION, END):
                self._take(event, seen)
            del self._looks[: self._next(self._tail.position + 1) - 1]
            if self._began is None:
                return
            if EVALUATION in seen:
                self._evaluated, _ = seen[EVALUATION]
            counted_by = END if self.ended or self._evaluated is None else EVALUATION
            if counted_by in seen:
                # where no evaluation was seen, the one that is told of came no sooner
                self._evaluated, counts = seen[counted_by]
                self._on_end(counts)
            if END in seen:
                self.ended = True
                self.least, self.most = self._since(self._began, seen[END][0])
                self._write_down(self._began)
                self._metered = False
            if self._meter is None and self._log is not None:
                self._meter = ContentionMeter()

    def _note(self) -> None:
        """Look once. Of looks between which nothing was said the first and the last are kept."""
        before, asked = self._count(), self._clock()
        said = max(self._looks[-1].said, self._said())
        known, after = self._clock(), self._count()
        look = _Look(before, asked, said, known, before if after == before else after)
        if len(self._looks) > 1 and self._looks[-2].said == said:
            self._looks.pop()
        self._looks.append(look)

    def _next(self, position: int) -> int:
        """Which look is the first by which all up to a position was said."""
        return bisect_left(self._looks, position, key=lambda look: look.said)

    def _take(self, event: Event, seen: dict[str, tuple[_Window, Any]]) -> None:
        """Note when an event was said, the last of its kind; none counts before the first beginning."""
        kind = event["event"]
        if self._began is None and kind != BEGIN:
            return
        at = self._next(self._tail.position)
        before = self._looks[at - 1]
        known, counts = self._looks[at][-2:] if at < len(self._looks) else (self._clock(), self._count())
        if self._began is None:
            self._began = before.asked, known
            self._on_begin(before.before)
            return
        if kind == EVALUATION and (self.ended or END in seen):
            return  # after an end nothing is counted but by a later one, to which the time lasts too
        seen[kind] = (before.asked, known), counts
        if kind == END:
            self.weights, self.steps = event.get("weights"), event["step"]

    def _write_down(self, began: _Window) -> None:
        if self._log is None:
            return
        evaluated = {} if self._evaluated is None else {"to_evaluation": self._since(began, self._evaluated)}
        self._log.write(WATCHED, least=self.least, most=self.most, **evaluated)

    def _write_contention(self) -> None:
        if self._log is not None and self._meter is not None and self.ended and not self._metered:
            self._log.write(CONTENTION, **self._meter.seen().model_dump())
            self._metered = True

    @staticmethod
    def _since(began: _Window, window: _Window) -> tuple[float, float]:
        """The least and the most seconds from something within one window to something within another."""
        return max(0.0, window[0] - began[1]), window[1] - began[0]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
