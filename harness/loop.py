"""The timed loop: loading ahead, computing under the clock, evaluating behind.

The clock is perf_counter_ns. `core` of a batch runs from a synchronised device to a synchronised
device; `whole` of a round from its first touch of the loader to its last evaluated batch.
"""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.errors import StepError
from harness.wall_clock import now

if TYPE_CHECKING:
    import torch

    from harness.case import Batch, Loader

Compute = Callable[["list[torch.Tensor]"], "tuple[list[torch.Tensor], float]"]
Evaluate = Callable[["list[torch.Tensor]", "torch.Tensor"], tuple[float, float]]

AHEAD = 4
"""Batches that may wait between loader and compute, and between compute and evaluation."""

_END = object()


@dataclass
class TimedRound:
    """One pass over the data. Times in nanoseconds."""

    started: float
    items: int = 0
    whole_ns: int = 0
    batch_ns: list[int] = field(default_factory=list)
    evaluation_ns: int = 0
    score: float = 0.0
    weight: float = 0.0
    foo_seconds: float = 0.0
    reused_memory: bool = False

    @property
    def core_ns(self) -> int:
        """The sum of the compute windows."""
        return sum(self.batch_ns)

    @property
    def accuracy(self) -> float | None:
        """The metric over the round; None if nothing was weighed."""
        return self.score / self.weight if self.weight else None


class _Channel:
    """A bounded queue that either side may close."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._room = threading.Semaphore(AHEAD)
        self.closed = False

    def put(self, item: Any) -> bool:
        """Wait for room; False if the channel was closed."""
        while not self.closed:
            if self._room.acquire(timeout=0.1):
                self._items.put(item)
                return True
        return False

    def get(self) -> Any:
        """Wait for an item; `_END` if the channel was closed."""
        while not self.closed:
            try:
                item = self._items.get(timeout=0.1)
            except queue.Empty:
                continue
            self._room.release()
            return item
        return _END


class _Stage(threading.Thread, ABC):
    """A stage beside the compute loop. What it raises is raised again where its work is used."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.channel = _Channel()
        self.failure: BaseException | None = None
        self._ready = threading.Event()

    @classmethod
    def start_all(cls, *stages: _Stage) -> None:
        """Start stages whose own torch operators use one core each, so that they don't crowd an engine on the CPU.

        torch keeps the number of threads per calling thread, and a default for threads to come, which is put back.
        """
        import torch

        threads = torch.get_num_threads()
        for stage in stages:
            stage.start()
        for stage in stages:
            stage._ready.wait()
        torch.set_num_threads(threads)

    def run(self) -> None:
        import torch

        torch.set_num_threads(1)
        self._ready.set()
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001 (raised again in the main thread)
            self.failure = error

    @abstractmethod
    def work(self) -> None:
        """Runs in the thread."""

    def stop(self) -> None:
        """End the thread, whatever it waits for; a loader that hangs is left behind."""
        self.channel.closed = True
        if self.ident is not None:
            self.join(timeout=5)


class _Prefetcher(_Stage):
    """Walks a loader."""

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self._loader = loader

    def work(self) -> None:
        try:
            for batch in self._loader:
                if not self.channel.put(batch):
                    return
        finally:
            self.channel.put(_END)

    def __iter__(self) -> Iterator[Batch]:
        while (batch := self.channel.get()) is not _END:
            yield batch
        self.join()
        if self.failure:
            raise self.failure


class _Evaluation(_Stage):
    """Scores batches."""

    def __init__(self, evaluate: Evaluate, result: TimedRound) -> None:
        super().__init__()
        self._evaluate = evaluate
        self._result = result

    def work(self) -> None:
        try:
            while (item := self.channel.get()) is not _END:
                begun = time.perf_counter_ns()
                score, weight = self._evaluate(*item)
                self._result.score += float(score)
                self._result.weight += float(weight)
                self._result.evaluation_ns += time.perf_counter_ns() - begun
        finally:
            self.channel.closed = True

    def finish(self) -> None:
        """Wait for the last batch; raise what evaluation raised."""
        self.channel.put(_END)
        self.join()
        if self.failure:
            raise self.failure


def timed_round(
    loader: Loader,
    compute: Compute,
    synchronize: Callable[[], None],
    evaluate: Evaluate,
    progress: Callable[[int, int], None] = lambda batches, items: None,
) -> TimedRound:
    """Run every batch of `loader` through `compute` once, under the clock.

    Args:
        loader: yields (inputs, targets) on the CPU.
        compute: takes the inputs, returns (outputs, foo_time in seconds).
        synchronize: returns when the device is idle.
        evaluate: scores one batch on the CPU.
        progress: told batches and items so far, after each batch.

    Raises:
        StepError: an output that does not answer the whole batch.
        Exception: whatever the loader, the engine or the evaluator raises.
    """
    result = TimedRound(started=now())
    clock = time.perf_counter_ns
    begun = clock()
    loading, evaluation = _Prefetcher(loader), _Evaluation(evaluate, result)
    _Stage.start_all(loading, evaluation)
    previous: list[torch.Tensor] = []
    try:
        for inputs, targets in loading:
            synchronize()
            start = clock()
            outputs, foo_seconds = compute(inputs)
            synchronize()
            result.batch_ns.append(clock() - start)
            result.foo_seconds += abs(foo_seconds)
            check_outputs(outputs, len(inputs[0]))
            result.reused_memory |= share_memory(previous, outputs)
            previous = outputs
            result.items += len(inputs[0])
            if not evaluation.channel.put(([output.detach().cpu() for output in outputs], targets)):
                break
            progress(len(result.batch_ns), result.items)
        evaluation.finish()
    finally:
        loading.stop()
        evaluation.stop()
    result.whole_ns = clock() - begun
    return result


def check_outputs(outputs: object, batch: int) -> None:
    """An answer is a list of tensors with one row per sample.

    Raises:
        StepError: it is something else.
    """
    if not isinstance(outputs, list) or not outputs:
        raise StepError(f"the engine returned {type(outputs).__name__}; expected a list of tensors")
    import torch

    for index, output in enumerate(outputs):
        if type(output) is not torch.Tensor or output.layout is not torch.strided or output.is_meta:
            raise StepError(f"output {index} is a {type(output).__name__}; expected a plain, dense torch.Tensor")
        if output.dim() == 0 or len(output) != batch:
            raise StepError(
                f"output {index} has shape {tuple(output.shape)}; expected one row for each of {batch} samples"
            )


def share_memory(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    """Whether two answers, both alive, lie in the same memory."""
    held = {tensor.untyped_storage().data_ptr() for tensor in one} - {0}
    return any(tensor.untyped_storage().data_ptr() in held for tensor in other)


def loader_rate(loader: Loader, least_seconds: float = 0.25, most_seconds: float = 20.0) -> float:
    """Items per second of the loader alone: the best of as many passes as `least_seconds` take.

    The best, since it is a ceiling. A pass is ended after `most_seconds`.
    """
    best, begun = 0.0, time.perf_counter()
    while not best or time.perf_counter() - begun < least_seconds:
        items, start = 0, time.perf_counter()
        for inputs, _ in loader:
            items += len(inputs[0])
            if time.perf_counter() - start > most_seconds:
                break
        if not items:
            return 0.0
        best = max(best, items / (time.perf_counter() - start))
    return best
