"""How long a training took by the agent's clock, or the session's: what the rank says of its own is held against it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic  # by name, before a vendor's monitor code is there: a changed module changes nothing

from proofmark.monitoring.contention import ContentionMeter
from proofmark.record.events.log import Event, EventLog
from proofmark.training.logs.ranks.tail import Tail
from proofmark.training.outcome.event_types import CONTENTION, WATCHED

BEGIN, EVALUATION, END = "train_begin", "evaluation", "train_end"
"""What is looked for in the rank's log."""

EVERY = 0.1
"""Seconds between two looks: between two a training may have begun or ended."""

UNHEARD = 3
"""Looks in a row that may come before what the rank has said is in its log. That takes milliseconds, once this process
goes on; who never stops talking is looked at all the same."""

_Window = tuple[float, float]


class Stopwatch:
    """Looks at a rank's log now and then, and notes when training began and ended: between this look and the last.

    However late a look comes on a busy machine, the seconds that training took lie between `least` and `most`. They
    last from the first beginning that the rank tells of to the last end, and nothing that it tells stops them.

    Attributes:
        weights: the digest of those with which it ended, as the rank told it with that end; None where it told none.
    """

    def __init__(
        self,
        path: Path,
        log: EventLog | None = None,
        clock: Callable[[], float] = monotonic,
        on_end: Callable[[], None] = lambda: None,
        on_wait: Callable[[], None] = lambda: None,
        is_heard: Callable[[], bool] = lambda: True,
    ) -> None:
        """`on_end` is called at each look that sees an evaluation, since it may be the last, or an end without one, or
        one after an end; `on_wait` at each that sees no beginning yet. `is_heard` says whether all that the rank has
        said by then is in its log."""
        self._tail, self._log, self._clock = Tail(path), log, clock
        self._on_end, self._on_wait = on_end, on_wait
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._is_heard, self._unheard, self._looked = is_heard, 0, clock()
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
            before, heard = self._looked, self._hears()
            self._write_contention()  # of a training that one look sees begin and end nothing was measured before
            events: dict[str, Event] = {}
            for event in self._tail.events(BEGIN, EVALUATION, END):
                if self._began is not None or BEGIN in events or event["event"] == BEGIN:
                    events[event["event"]] = event
            window = (before, self._clock())
            self._began = self._began or (window if BEGIN in events else None)
            if self._began is None:
                if heard:
                    self._on_wait()
                return
            if EVALUATION in events:
                self._evaluated = window
            # after an end nothing is counted but by a later one, to which the time lasts too
            counted_by = END if self.ended or self._evaluated is None else EVALUATION
            if counted_by in events:
                self._on_end()
                self._evaluated = window  # where no evaluation was seen, the one that is told of came no sooner
            if END in events:
                self.ended, self.weights = True, events[END].get("weights")
                self.least, self.most = self._since(self._began, window)
                self._write_down(self._began)
                self._metered = False
            if self._meter is None and self._log is not None:
                self._meter = ContentionMeter()

    def _hears(self) -> bool:
        """Whether what is not in the log by now was not said before. Else it may have been since the look before."""
        now = self._clock()
        heard = self._unheard == UNHEARD or self._is_heard()
        self._unheard = 0 if heard else self._unheard + 1
        if heard:
            self._looked = now
        return heard

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
