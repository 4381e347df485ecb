"""Training's clock: all of it and its parts, over resumptions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

PARTS = ("data", "compute", "evaluation", "checkpoint")
"""What training time is divided into; the rest is the referee's own."""


class Part:
    """The time within it is added to its part; what ends in an exception is not. Entered at every step, so that it is
    no generator: those take several microseconds."""

    __slots__ = ("_name", "_parts", "_started", "_synchronize")

    def __init__(self, parts: dict[str, int], name: str, synchronize: Callable[[], None] | None) -> None:
        self._parts, self._name, self._synchronize = parts, name, synchronize
        self._started = 0

    def __enter__(self) -> None:
        if self._synchronize is not None:
            self._synchronize()
        self._started = time.perf_counter_ns()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            return
        if self._synchronize is not None:
            self._synchronize()
        self._parts[self._name] += time.perf_counter_ns() - self._started


class Clock:
    """Stands at 0 until `start`; `parts` are in nanoseconds.

    Args:
        synchronize: returns when the device is idle.
    """

    def __init__(self, synchronize: Callable[[], None]) -> None:
        self._synchronize = synchronize
        self._started: int | None = None
        self._before, self._parts_before = 0, dict.fromkeys(PARTS, 0)
        self.parts = dict(self._parts_before)

    def start(self) -> None:
        """Training begins, or goes on from where `resume` said."""
        self.parts = dict(self._parts_before)
        self._started = time.perf_counter_ns()

    def part(self, name: str) -> Part:
        """Time one part of training, synchronised with the device on both sides; loading needs no device."""
        return Part(self.parts, name, None if name == "data" else self._synchronize)

    def seconds(self) -> dict[str, float]:
        """Training and each of its parts, since it began. Nothing stops it: who would see for how long?"""
        return _in_seconds(self._trained(), self.parts)

    def before(self) -> dict[str, float]:
        """The same up to where `resume` went on from."""
        return _in_seconds(self._before, self._parts_before)

    def state(self) -> dict[str, Any]:
        """For `resume`."""
        return {"train_ns": self._trained(), "parts_ns": self.parts}

    def resume(self, state: dict[str, Any]) -> None:
        """Before the start: go on from a `state`."""
        self._before, self._parts_before = state["train_ns"], state["parts_ns"]

    def _trained(self) -> int:
        return self._before + (0 if self._started is None else time.perf_counter_ns() - self._started)


def _in_seconds(trained: int, parts: Mapping[str, int]) -> dict[str, float]:
    return {"train_seconds": trained / 1e9, **{f"{part}_seconds": ns / 1e9 for part, ns in parts.items()}}
