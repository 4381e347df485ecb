"""How often a service is asked, and how long its errors are borne."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from proofmark.launch.service.contract import ServiceError, Timing

T = TypeVar("T")

GROWTH, JITTER, SLOWEST = 1.5, 0.25, 60.0
"""Of the wait between two looks, or after an error: the factor by which it grows, its jitter as a share, and its
longest, in seconds."""


class Stopped(Exception):
    """Waiting was ended: the job is to be stopped."""


class Patience:
    """Waits longer each time, never quite as long as others who began with it, and no more once `stop` is set."""

    def __init__(self, timing: Timing, stop: threading.Event | None = None) -> None:
        self._first, self._last = timing.poll
        self._budget, self._stop = timing.budget, stop or threading.Event()
        self._delay = self._first

    def look_again(self) -> None:
        """Wait for the next look.

        Raises:
            Stopped: somebody set the event.
        """
        self._pause(self._delay)
        self._delay = min(self._delay * GROWTH, self._last)

    def hurry(self) -> None:
        """Something has changed: look soon."""
        self._delay = self._first

    def ask(self, request: Callable[[], T]) -> T:
        """The request's answer, once it has one.

        Raises:
            ServiceError: it is refused for good, or has failed for longer than the budget (`transient`).
            Stopped: somebody set the event.
        """
        failing, delay = None, self._first
        while True:
            try:
                return request()
            except ServiceError as error:
                if not error.transient:
                    raise
                now = time.monotonic()
                failing = failing or now
                if now - failing > self._budget:
                    raise ServiceError(f"{error}; so for {now - failing:.0f} s", transient=True) from None
            self._pause(delay)
            delay = min(delay * GROWTH, SLOWEST)

    def _pause(self, seconds: float) -> None:
        scattered = seconds * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 (no secret)
        if self._stop.wait(scattered):
            raise Stopped
