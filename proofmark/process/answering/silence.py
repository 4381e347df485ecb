"""How long a case's process may be silent, and the signs of life that it gives.

What it does is either of unknown length (data, model, export, compilation, an engine's first calls), or one of the many
steps of a loop that has begun: batches, calls, steps of a training. It says which with every sign. Of a batch that is
long in coming it says that something computes for it ("loading"), which is no hang and yet no progress, or that nothing
does ("waiting").
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Doing = Literal["setup", "calls"]

OF_A_LOADER = frozenset({"loading", "waiting"})
"""Signs that are of no progress."""

FACTOR = 3.0
"""A step of a loop may take so many times the longest that one has taken before."""


@dataclass(frozen=True)
class Patience:
    """Seconds of silence that are no hang: in a loop, and elsewhere."""

    hang: float = float("inf")
    setup: float = float("inf")


class Listener:
    """The parent's ear."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._longest = 0.0
        self.doing: Doing = "setup"
        self._reached = ""
        self._heard = time.monotonic()
        self._loaded = 0.0
        self._waits = False

    def begin(self) -> None:
        """A step is asked for."""
        self.doing, self._reached, self._heard = "setup", "", time.monotonic()
        self._loaded, self._waits = 0.0, False

    def hear(self, message: Mapping[str, Any]) -> None:
        """Take any message for a sign of life, but what is said of a batch that doesn't come."""
        now = time.monotonic()
        self._waits = message.get("alive") == "waiting"
        if message.get("alive") in OF_A_LOADER:
            self._loaded = self._loaded if self._waits else now - self._heard
            return
        if "phase" in message or message.get("alive") == self.doing == "calls":
            self._longest = max(self._longest, now - self._heard)
        self.doing = message.get("alive", self.doing)
        if "phase" in message:
            self._reached = f", last heard of in {message['phase']}: {message['step']}/{message['steps']}"
        self._heard, self._loaded = now, 0.0

    def excuse(self, seconds: float) -> None:
        """So many seconds of silence, where that is more than none, are not the child's."""
        self._heard += max(0.0, seconds)

    @property
    def silence(self) -> float:
        """Seconds since the last sign."""
        return time.monotonic() - self._heard

    @property
    def limit(self) -> float:
        """Seconds of silence that are allowed now."""
        if self.doing == "setup":
            return self._patience.setup
        hang, setup = self._patience.hang, self._patience.setup
        return max(hang, min(self._loaded + max(hang, FACTOR * self._longest), setup))

    def verdict(self) -> str:
        """What happened, where the limit has passed."""
        at_most = self._patience.hang < self.limit == self._patience.setup
        option = "--setup-timeout" if at_most or self.doing == "setup" else "--hang-timeout"
        why = "computed, and gave no batch" if self._loaded else ""
        why = "gave no batch, and nothing computed for it" if self._waits else why
        loader = f"; its data loader {why}" if why else ""
        return f"gave no sign of life for {self.silence:.0f} s and was ended ({option}){self._reached}{loader}"
