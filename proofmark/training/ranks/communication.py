"""How much of a rank's compute goes to the other ranks, measured on some of its steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from proofmark.errors import reason
from proofmark.training.ranks.model.strategy import Place

EVERY, LATER = 10, 100
"""Steps between two that are measured, up to the LATERth step and after it: marking a gradient takes ten microseconds,
which not every step should."""

Moment = Any
"""Nanoseconds of this process's clock, or an event in the device's stream."""


class CommunicationMeter:
    """Time in which a rank computes nothing because it waits for others or exchanges with them.

    With DistributedDataParallel that is from the moment that the rank's last gradient is ready to the end of the
    backward pass, and before the forward pass while buffers are handed round. A wait for a rank that is slow, or late
    with its data, is in it; an exchange that goes on while the rank still computes gradients costs nothing and is not.
    It is measured on some steps, in seconds by the clock of whatever computes: the host's, or the device's own
    events. Nothing else about those steps differs.

    Attributes:
        reason: why it cannot be measured, None if it can.
    """

    def __init__(self, model: torch.nn.Module, place: Place) -> None:
        self._replica: Any = model
        self._world, self._device = place.world, place.device
        self.reason: str | None = "not measured with fsdp, which exchanges all along a step"
        if isinstance(model, DistributedDataParallel):
            self.reason = self._lacks_clock() if self._world > 1 else None
        self._seconds = self._of = 0.0
        self._steps = 0
        self._spans: list[tuple[Moment, Moment]] | None = None

    def _lacks_clock(self) -> str | None:
        """Why its device's events tell no time, which they need not; None where they do."""
        try:
            begin, end = self._now(), self._now()
            if not isinstance(end, int):
                end.synchronize()
            self._between(begin, end)
        except RuntimeError as error:
            return f"not measured: the device's events tell no time: {reason(error)}"
        return None

    def totals(self) -> dict[str, Any] | None:
        """Seconds of communication `of` seconds of compute on so many `steps`; None where there is only one rank."""
        if self._world == 1:
            return None
        return {"seconds": self._seconds, "of": self._of, "steps": self._steps, "reason": self.reason}

    def step(self, number: int, compute: Callable[[], int]) -> AbstractContextManager[None]:
        """Around a whole step, counted from 1. `compute`: nanoseconds of compute so far, synchronised."""
        if self._world == 1 or self.reason or number % (EVERY if number <= LATER else LATER):
            return nullcontext()
        return self._measured(compute)

    @contextmanager
    def _measured(self, compute: Callable[[], int]) -> Iterator[None]:
        self._spans, before = [], compute()
        yield
        self._seconds += sum(self._between(begin, end) for begin, end in self._spans)
        self._of += (compute() - before) / 1e9
        self._steps += 1
        self._spans = None

    @contextmanager
    def exchange(self) -> Iterator[None]:
        """Around what ranks tell one another beside gradients: the first such waits for whoever's data is late."""
        if self._spans is None:
            yield
            return
        begin = self._now()
        yield
        self._spans.append((begin, self._now()))

    def micro_step(self, last: bool) -> AbstractContextManager[None]:
        """Around forward and backward pass; the `last` of a step exchanges gradients."""
        return nullcontext() if self._spans is None else self._marked(self._spans, last)

    @contextmanager
    def _marked(self, spans: list[tuple[Moment, Moment]], last: bool) -> Iterator[None]:
        marks: dict[str, Moment] = {}

        def mark(name: str) -> Callable[..., None]:
            return lambda *_: marks.__setitem__(name, self._now())

        trained = [each for each in self._replica.parameters() if each.requires_grad]
        hooks = [each.register_post_accumulate_grad_hook(mark("gradient")) for each in trained]
        hooks.append(self._replica.register_forward_pre_hook(mark("called")))
        hooks.append(self._replica.module.register_forward_pre_hook(mark("forward")))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
        marks["end"] = self._now()
        pairs = [("called", "forward")] + ([("gradient", "end")] if last else [])
        spans += [(marks[begin], marks[end]) for begin, end in pairs if begin in marks and end in marks]

    def _now(self) -> Moment:
        if self._device.type == "cpu":
            return time.perf_counter_ns()
        event = torch.Event(self._device, enable_timing=True)
        event.record()
        return event

    def _between(self, begin: Moment, end: Moment) -> float:
        """Seconds; the device has come to both."""
        return float((end - begin) / 1e9 if self._device.type == "cpu" else begin.elapsed_time(end) / 1e3)
