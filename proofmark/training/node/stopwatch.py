"""How long a training took by the agent's clock, or the session's: what the rank says of its own is held against it."""

from __future__ import annotations

import threading
from collections import deque
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
    """What had been counted; then when it was asked what the rank had said; that, in bytes; and when that was known."""

    counts: Any
    asked: float
    said: int
    known: float


class Stopwatch:
    """Looks at what a rank says now and then, and notes between which looks training began and ended.

    An event was said between the last look at which it was not, and the first at which it was, whenever its line comes
    into the log: the disk may stand still, or the thread that writes. However late a look comes on a busy machine, the
    seconds that training took lie between `least` and `most`. They last from the first beginning that the rank tells of
    to the last end, and nothing that it tells stops them.

    Attributes:
        weights: the digest of those with which it ended, as the rank told it with that end; None where it told none.
    """

    def __init__(
        self,
        path: Path,
        log: EventLog | None = None,
        clock: Callable[[], float] = monotonic,
        on_end: Callable[[], None] = lambda: None,
        said: Callable[[], int] | None = None,
        count: Callable[[], Any] = lambda: None,
        on_begin: Callable[[Any], None] = lambda counts: None,
    ) -> None:
        """Of the log in `path`.

        Args:
            path: that of the rank's log.
            log: the agent's own.
            clock: seconds.
            on_end: called at each look that sees an evaluation, since it may be the last, or an end without one, or one
                after an end.
            said: where in the log all ends that the rank has said by then, also what is not in it yet; if not given,
                what is in it.
            count: what is counted meanwhile.
            on_begin: gets what that was at the last look before training began.
        """
        self._tail, self._log, self._clock = Tail(path), log, clock
        self._said, self._count = said or (lambda: _size(path)), count
        self._on_begin, self._on_end = on_begin, on_end
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._looks = deque([_Look(None, clock(), 0, clock())])
        self._began: _Window | None = None
        self._evaluated: _Window | None = None
        self.least = self.most = 0.0
        self.ended = False
        self._meter: ContentionMeter | None = None
        self._metered = False
        self.weights: str | None = None

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
            counts = self._count() if self._began is None else None  # before what is said: it was all there by then
            self._note(_Look(counts, self._clock(), self._said(), self._clock()))
            self._write_contention()  # of a training that one look sees begin and end nothing was measured before
            seen: dict[str, _Window] = {}
            for event in self._tail.events(BEGIN, EVALUATION, END):
                self._take(event, seen)
            while len(self._looks) > 1 and self._looks[1].said <= self._tail.position:
                self._looks.popleft()
            if self._began is None:
                return
            if EVALUATION in seen:
                self._evaluated = seen[EVALUATION]
            # after an end nothing is counted but by a later one, to which the time lasts too
            counted_by = END if self.ended or self._evaluated is None else EVALUATION
            if counted_by in seen:
                self._on_end()
                self._evaluated = seen[counted_by]  # where none was seen, the one that is told of came no sooner
            if END in seen:
                self.ended = True
                self.least, self.most = self._since(self._began, seen[END])
                self._write_down(self._began)
                self._metered = False
            if self._meter is None and self._log is not None:
                self._meter = ContentionMeter()

    def _note(self, look: _Look) -> None:
        """Of those between which nothing was said the first and the last are kept."""
        if len(self._looks) > 1 and self._looks[-2].said == look.said:
            self._looks.pop()
        self._looks.append(look)

    def _take(self, event: Event, seen: dict[str, _Window]) -> None:
        """Note when an event was said, the last of its kind; none counts before the first beginning."""
        kind, position = event["event"], self._tail.position
        before = next(look for look in reversed(self._looks) if look.said < position)
        after = next((look.known for look in self._looks if look.said >= position), None)
        window = before.asked, self._clock() if after is None else after
        if kind == BEGIN and self._began is None:
            self._began = window
            self._on_begin(before.counts)
        elif self._began is not None:
            seen[kind] = window
            if kind == END:
                self.weights = event.get("weights")

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
