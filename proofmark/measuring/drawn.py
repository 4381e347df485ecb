"""A loader whose order nobody can know: every sample once a pass, in batches that are drawn anew for each."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from typing_extensions import TypeIs

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

    from proofmark.case import Loader


class Order:
    """A batch sampler with another order for each pass, by a seed of the system's randomness.

    Attributes:
        seeds: those of the passes that have begun, for the log: `torch.randperm` with one gives its pass again.
    """

    def __init__(self, items: int, batch: int) -> None:
        self._items, self._batch = items, min(batch, items)
        self._left, self._carried = 0, list[int]()
        self._most: int | None = None
        self._to_come: int | None = None
        self.seeds: list[int] = []

    def __len__(self) -> int:
        return -(-self._items // self._batch)

    def __iter__(self) -> Iterator[list[int]]:
        import torch

        seed = secrets.randbits(62)
        self.seeds.append(seed)
        order = torch.randperm(self._items, generator=torch.Generator().manual_seed(seed)).tolist()
        if self._left:
            order = self._run_on(order)
        self._to_come = self._most
        for start in range(0, len(order), self._batch):
            if self._to_come is not None:
                if not self._to_come:
                    return
                self._to_come -= 1
            yield order[start : start + self._batch]

    def _run_on(self, order: list[int]) -> list[int]:
        """What was left of the pass before, and of this one as much as fills batches."""
        self._left -= 1
        order, short = self._carried + order, (len(self._carried) + self._items) % self._batch
        if self._left:
            self._carried = order[len(order) - short :]
            return order[: len(order) - short]
        self._carried = []
        return order + order[: -len(order) % self._batch]

    @contextmanager
    def running_on(self, passes: int) -> Iterator[None]:
        """For so many passes no batch is short: one of another size is never fresh, and an engine would know that.

        Each pass goes on in the batch in which the one before it ended. Samples that come once more fill the last one.
        """
        self._left = passes
        try:
            yield
        finally:
            self._left, self._carried = 0, []

    @contextmanager
    def at_most(self, batches: int) -> Iterator[None]:
        """A pass that begins now has so many batches, and no more.

        What a reader leaves of one, workers go on loading, and the next pass waits for them under its clock.
        """
        self._most = batches
        try:
            yield
        finally:
            self._most = None

    def end(self) -> None:
        """Have the pass under way end as soon as what is being loaded has come."""
        self._to_come = 0

    def take_seeds(self) -> list[int]:
        """Those since the last call."""
        taken, self.seeds = self.seeds, []
        return taken


def drawn_anew(loader: Loader) -> tuple[Loader, Order | None]:
    """The same data in an order of its own for each pass, where torch's DataLoader can be asked for that.

    Any other loader is left as it is: then there is no `Order`.
    """
    if not is_torchs_own(loader) or not loader.batch_size:
        return loader, None
    order = Order(len(loader.dataset), loader.batch_size)
    sampler: Any = order  # an iterable of lists with a length, which is all that torch needs
    drawn: Any = type(loader)(
        loader.dataset,
        batch_sampler=sampler,
        collate_fn=loader.collate_fn,
        num_workers=loader.num_workers,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=loader.persistent_workers,
    )
    return drawn, order


def loaded_here(loader: Loader) -> Loader:
    """The same data, loaded by this process: in its own order, and all of it, where `drawn_anew` draws one.

    What is looked at once needs no workers. Where torch's loader is left to a collection of garbage, its workers are
    not told to end, and each is waited for for five seconds, some time later: in the midst of a round.
    """
    if not is_torchs_own(loader) or not (loader.num_workers or loader.batch_size):
        return loader
    from torch.utils.data import BatchSampler

    size = loader.batch_size
    alone: Any = type(loader)(
        loader.dataset,
        batch_sampler=BatchSampler(range(len(loader.dataset)), size, drop_last=False) if size else loader.batch_sampler,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        generator=loader.generator,
    )
    return alone


def is_torchs_own(loader: object) -> TypeIs[DataLoader[Any]]:
    """Whether it is torch's DataLoader over data with indices, made as that one is."""
    from torch.utils.data import DataLoader, IterableDataset

    return (
        isinstance(loader, DataLoader)
        and type(loader).__init__ is DataLoader.__init__
        and loader.batch_sampler is not None
        and not isinstance(loader.dataset, IterableDataset)
    )
