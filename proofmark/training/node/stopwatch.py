"""How long a training took by the agent's clock, or the session's: what the rank says of its own is held against it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep  # by name, before a vendor's monitor code is there: a changed module changes nothing

from proofmark.record.events import EventLog
from proofmark.training.logs.tail import Tail

EVENT = "watched"
"""The event of the agent's log with the least and the most seconds that rank 0's training can have taken."""

EVERY = 0.1
"""Seconds between two looks: between two a training may have begun or ended."""

_GOES_ON = {"train_begin": True, "confirmation_begin": False, "confirmation": True, "train_end": False}
"""Events of a rank's log with which training's time begins to pass, or stops."""

_Window = tuple[float, float]


class Stopwatch:
    """Looks at a rank's log now and then, and notes when training began and ended: between this look and the last.

    However late a look comes on a busy machine, the seconds that training took lie between `least` and `most`.
    """

    def __init__(self, path: Path, log: EventLog | None = None, clock: Callable[[], float] = monotonic) -> None:
        self._tail, self._log, self._clock = Tail(path), log, clock
        self._lock = threading.Lock()
        self._looked = clock()
        self._since: _Window | None = None
        self.least = self.most = 0.0
        self.ended = False

    def run(self) -> None:
        """Look until training has ended."""
        while not self.ended:
            sleep(EVERY)
            self.look()

    def look(self) -> None:
        """Take note of what happened since the last look; when training has ended, write down how long it took."""
        with self._lock:
            if self.ended:
                return
            before, self._looked = self._looked, self._clock()
            events = [event["event"] for event in self._tail.events()]
            window = (before, self._clock())
            for event in events:
                if event in _GOES_ON:
                    self._turn(_GOES_ON[event], window)
            if "train_end" in events:
                self.ended = True
                if self._log is not None:
                    self._log.write(EVENT, least=self.least, most=self.most)

    def _turn(self, goes_on: bool, window: _Window) -> None:
        if self._since is not None:
            self.least += max(0.0, window[0] - self._since[1])
            self.most += window[1] - self._since[0]
        self._since = window if goes_on else None
