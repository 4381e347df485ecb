"""What lies around the compute of a timed round: loading before it, evaluation behind it.

Beside it, where the device is another than the processor: a prefetcher loads ahead, and a thread evaluates behind. In
turn with it, where the processor is the device: whatever ran beside a computation would take its cores.
"""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from proofmark.case import Batch, Loader
    from proofmark.metric import Metric

AHEAD = 4
"""Batches that may wait between loader and compute, and between compute and evaluation."""

_END = object()


@dataclass
class Score:
    """A round's metric, and the time that evaluating took: each batch, and what is computed of all in the end."""

    metric: Metric
    evaluation_ns: int = 0

    def add(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> None:
        """Score one batch."""
        begun = time.perf_counter_ns()
        self.metric.update(outputs, targets)
        self.evaluation_ns += time.perf_counter_ns() - begun

    def close(self) -> None:
        """Compute."""
        begun = time.perf_counter_ns()
        self.metric.compute()
        self.evaluation_ns += time.perf_counter_ns() - begun


class Stages(ABC):
    """Loading and evaluation of one round."""

    def __init__(self, loader: Loader, passes: int, metric: Metric) -> None:
        self.score = Score(metric)
        self._loader = loader
        self._passes = passes

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """All batches of all passes, in order. Raises what the loader raises."""

    @abstractmethod
    def evaluate(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> bool:
        """Score a batch now or soon; False where evaluation has failed, and `finish` says how."""

    @abstractmethod
    def finish(self) -> None:
        """Wait for the last batch's score, and compute; raise what evaluation raised."""

    @abstractmethod
    def stop(self) -> None:
        """End what runs beside, however the round ended."""


class InTurn(Stages):
    """Nothing runs beside the compute."""

    def batches(self) -> Iterator[Batch]:
        """Each is loaded when it is asked for."""
        for _ in range(self._passes):
            yield from self._loader

    def evaluate(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> bool:
        """Scored at once."""
        self.score.add(outputs, targets)
        return True

    def finish(self) -> None:
        """All is scored."""
        self.score.close()

    def stop(self) -> None:
        """Nothing runs."""


class Beside(Stages):
    """A thread loads ahead, another evaluates behind."""

    def __init__(self, loader: Loader, passes: int, metric: Metric) -> None:
        super().__init__(loader, passes, metric)
        self._loading = _Prefetcher(loader, passes)
        self._evaluation = _Evaluation(self.score)
        _Stage.start_all(self._loading, self._evaluation)

    def batches(self) -> Iterator[Batch]:
        """Up to AHEAD of them are loaded before they are asked for."""
        yield from self._loading

    def evaluate(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> bool:
        """Scored soon, unless AHEAD batches wait already: then it waits too."""
        return self._evaluation.channel.put((outputs, targets))

    def finish(self) -> None:
        """Raises what evaluation raised."""
        self._evaluation.finish()

    def stop(self) -> None:
        """Both threads end."""
        self._loading.stop()
        self._evaluation.stop()


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
        """Start stages whose own torch operators use one core each, so that an engine on the CPU keeps the others.

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
        torch.get_num_threads()  # a thread takes the default when it first asks or computes, which is put back by then
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
    """Walks a loader, as many times as there are passes."""

    def __init__(self, loader: Loader, passes: int) -> None:
        super().__init__()
        self._loader = loader
        self._passes = passes

    def work(self) -> None:
        try:
            for _ in range(self._passes):
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
    """Scores batches, and computes once there are no more."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self._score = score

    def work(self) -> None:
        try:
            while (item := self.channel.get()) is not _END:
                self._score.add(*item)
            if not self.channel.closed:
                self._score.close()
        finally:
            self.channel.closed = True

    def finish(self) -> None:
        """Wait for the last batch and what is computed then; raise what evaluation raised."""
        self.channel.put(_END)
        self.join()
        if self.failure:
            raise self.failure
