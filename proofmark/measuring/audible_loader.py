"""A data loader that shows that it lives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proofmark.case import Batch, IdentifiedDataset, Loader


class AudibleLoader:
    """A loader that gives a sign with every batch."""

    def __init__(self, loader: Loader, report: Callable[..., None]) -> None:
        self.silent, self._report = loader, report

    @property
    def dataset(self) -> IdentifiedDataset:
        """The data that is loaded."""
        return self.silent.dataset

    def __iter__(self) -> Iterator[Batch]:
        return self.audibly(self.silent)

    def __len__(self) -> int:
        return len(self.silent)

    def audibly(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same sign with each of other batches."""
        for batch in batches:
            self._report(alive="calls")
            yield batch
