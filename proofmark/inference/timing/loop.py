"""The timed loop: loading, computing under the clock, evaluating.

The clock is perf_counter_ns. `core` of a batch is its compute window, from an idle device to an answer on the
host; `whole` of a round runs from its first touch of the loader to its last evaluated batch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proofmark.inference.timing.stages import Beside, InTurn, Score
from proofmark.measuring.window import Apart, Compute, Synchronize, run_window
from proofmark.process.threads import one_thread
from proofmark.process.wall_clock import now

if TYPE_CHECKING:
    from proofmark.case import Loader
    from proofmark.measuring.drawn import Order
    from proofmark.metric import Metric


@dataclass
class TimedRound:
    """Whole passes over the data. Times in nanoseconds; `spent_ns` is the referee's own, not in `whole_ns`."""

    started: float
    score: Score
    passes: int = 1
    items: int = 0
    whole_ns: int = 0
    spent_ns: int = 0
    batch_ns: list[int] = field(default_factory=list)
    foo_seconds: float = 0.0
    foo_outside: bool = False
    fresh: list[int] = field(default_factory=list)

    def foo_fault(self, declared: bool) -> str | None:
        """What an honest engine does not report as `foo_time`; one that declares that there is some may have it, within
        its calls."""
        if self.foo_seconds and not declared:
            return f"reports {self.foo_seconds:.6g} s of foo_time"
        return "reports a foo_time that is not within its call" if self.foo_outside else None

    @property
    def core_ns(self) -> int:
        """The sum of the compute windows."""
        return sum(self.batch_ns)


def timed_round(
    loader: Loader,
    compute: Compute,
    synchronize: Synchronize,
    metric: Metric,
    progress: Callable[[int, int], None] = lambda batches, items: None,
    *,
    passes: int = 1,
    beside: bool = True,
) -> TimedRound:
    """Run every batch of `loader` through `compute`, under the clock.

    Args:
        loader: yields (inputs, targets) on the CPU.
        compute: takes the inputs, returns (outputs, foo_time in seconds).
        synchronize: returns when the device is idle.
        metric: is fed with every batch on the CPU, and computes in the end: both are in the round's whole.
        progress: takes batches and items so far, after each batch.
        passes: over the data.
        beside: whether loading and evaluation run beside the compute, not in turn with it.

    Raises:
        StepError: what the engine returned is no answer to the whole batch.
        Exception: whatever the loader, the engine or the metric raises.
    """
    started, clock = now(), time.perf_counter_ns
    begun = clock()
    stages = (Beside if beside else InTurn)(loader, passes, metric)
    result = TimedRound(started, stages.score, passes)
    with contextlib.ExitStack() as around:
        if isinstance(compute, Apart) and not beside:  # else a batch is computed here
            around.enter_context(one_thread())
        around.callback(stages.stop)
        for inputs, targets in stages.batches():
            batch = len(inputs[0])
            window = run_window(compute, inputs, synchronize)
            result.batch_ns.append(window.nanoseconds)
            result.foo_seconds += abs(window.foo_seconds)
            result.foo_outside |= not 0.0 <= window.foo_seconds <= window.seconds
            result.items += batch
            if not stages.evaluate(window.answer, targets):
                break
            progress(len(result.batch_ns), result.items)
        stages.finish()
    result.whole_ns = clock() - begun
    return result


def loader_round(
    loader: Loader, least_seconds: float, most_seconds: float = 20.0, order: Order | None = None
) -> tuple[int, float]:
    """The loader alone: items, and the seconds of as many passes as take at least `least_seconds`.

    A pass over much data is ended after `most_seconds`, or `least_seconds` if those are more: by its `order`, where
    that is ours. Then what workers are loading by then still comes, and counts: they began together, with no batch.
    """
    items, seconds, begun = 0, 0.0, time.perf_counter()
    while not items or seconds < least_seconds:
        before = items
        for inputs, _ in loader:
            items += len(inputs[0])
            if time.perf_counter() - begun > max(least_seconds, most_seconds):
                if order is None:
                    break
                order.end()
        seconds = time.perf_counter() - begun
        if items == before:
            break
    return items, seconds
