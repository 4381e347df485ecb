"""A data loader that shows that it lives: by each batch, and while it makes one that takes long."""

from __future__ import annotations

import multiprocessing.process
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from proofmark.measuring.rehearsal import alike

if TYPE_CHECKING:
    import torch

    from proofmark.case import Batch, IdentifiedDataset, Loader

LOOK = 2.0
"""Seconds between two looks at whether a loader that is waited for works: more than whoever hears of it waits before it
looks at the time."""

WORKS = 0.01
"""Share of a processor's time from which on a worker works: those that wait look up now and then."""


class AudibleLoader:
    """A loader that gives a sign with every batch, and says of one that takes long whether anything works on it. One
    that is unlike the `first` is a StepError."""

    def __init__(self, loader: Loader, report: Callable[..., None], first: list[torch.Tensor]) -> None:
        self.silent, self._report, self._first = loader, report, first
        watch = _Watch(report)
        self._awaited = watch.awaited
        weakref.finalize(self, watch.stopped.set)

    @property
    def dataset(self) -> IdentifiedDataset:
        """The data that is loaded."""
        return self.silent.dataset

    def __iter__(self) -> Iterator[Batch]:
        return self.audibly(self.silent)

    def __len__(self) -> int:
        return len(self.silent)

    def sign(self) -> None:
        """A sign in between, of whoever does more with a batch than one call."""
        self._report(alive="calls")

    def audibly(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same signs with each of other batches."""
        clock, batch = time.pthread_getcpuclockid(threading.get_ident()), object()
        self._awaited[batch] = clock
        try:
            for loaded in alike(batches, self._first):
                del self._awaited[batch]
                self.sign()
                yield loaded
                batch = object()
                self._awaited[batch] = clock
        finally:
            self._awaited.pop(batch, None)


def sign_of(loader: Loader) -> Callable[[], None]:
    """Shows that whoever reads a loader lives, where the loader is one that does."""
    return loader.sign if isinstance(loader, AudibleLoader) else lambda: None


class _Watch:
    """Looks now and then, in a thread of its own, at who makes the batches that are waited for.

    Attributes:
        awaited: those, each with the clock of the thread that waits: without workers it is the one that loads.
        stopped: set when there is nobody to wait any more.
    """

    def __init__(self, report: Callable[..., None]) -> None:
        self.awaited: dict[object, int] = {}
        self.stopped = threading.Event()
        self._report = report
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        before, spent = dict[object, int](), dict[int, float]()
        while not self.stopped.wait(LOOK):
            awaited = dict(self.awaited)
            now = dict(_read({*awaited.values(), *_workers()})) if awaited else {}
            if before.keys() & awaited.keys() & self.awaited.keys():
                works = any(seconds - spent.get(clock, 0.0) > WORKS * LOOK for clock, seconds in now.items())
                self._report(alive="loading" if works else "waiting")
            before, spent = awaited, now


def _workers() -> Iterator[int]:
    """The clocks of workers' time on processors, as clock_getcpuclockid(3) numbers them on Linux: exact, where /proc
    counts in hundredths of a second."""
    # active_children() would take the end of one that dies from torch, which then can't tell how it died
    for worker in list(getattr(multiprocessing.process, "_children", ())):
        yield (~worker.pid << 3) | 2


def _read(clocks: Iterable[int]) -> Iterator[tuple[int, float]]:
    for clock in clocks:
        try:
            yield clock, time.clock_gettime(clock)
        except OSError:  # whose it was has ended
            continue
