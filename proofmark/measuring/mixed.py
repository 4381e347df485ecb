"""The batches of a timed round: at places that nobody can know, some give way to inputs that nobody has seen.

A fresh batch is spliced from two of the data (`probes.splice`), so it lies off the data's manifold. Its answers are
held to the reference, as are random rows of others that are only watched. What of the data gave way is answered after
the round, and scored: every sample is.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proofmark.measuring.probes import splice

if TYPE_CHECKING:
    import torch

    from proofmark.case import Batch, IdentifiedDataset, Loader

SHARE, FEWEST, MOST = 8, 2, 128
"""One batch of so many is fresh; how many of a round at least and at most."""

HELD = 1 << 30
"""Bytes of the data's own batches that may wait for the end of a round."""

ROWS = 2
"""Rows of a batch whose answers are held against the reference."""


@dataclass
class Noted:
    """A batch that is remembered.

    Attributes:
        position: which of the round's it is.
        rows: the inputs of some rows, as they were before the call.
        chosen: which rows those are.
        held: the data's own inputs, where others took their place; None where it is only watched.
        targets: the data's.
        answers: of those rows, once they are there.
    """

    position: int
    rows: list[list[torch.Tensor]]
    chosen: list[int]
    held: list[torch.Tensor] | None
    targets: torch.Tensor
    answers: list[list[torch.Tensor]] = field(default_factory=list)


class Mixed:
    """A loader for one round."""

    def __init__(self, loader: Loader, passes: int, first: list[torch.Tensor]) -> None:
        """`first` is a full batch's inputs."""
        self._loader, self._size, self._chance = loader, len(first[0]), random.SystemRandom()
        batches, each = len(loader) * passes, sum(tensor.nbytes for tensor in first)
        count = min(max(FEWEST, batches // SHARE), MOST, max(1, HELD // max(1, each)), (batches - 1) // 2)
        drawn = self._chance.sample(range(1, batches), 2 * count) if count > 0 else []
        self._fresh, self._watched = set(drawn[:count]), set(drawn[count:])
        self._previous: list[torch.Tensor] | None = None
        self._position = -1
        self._answered = -1
        self._noted: dict[int, Noted] = {}
        self.spent_ns = 0

    @property
    def dataset(self) -> IdentifiedDataset:
        """The data."""
        return self._loader.dataset

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Batch]:
        """One pass; the next one goes on in the round."""
        for inputs, targets in self._loader:
            self._position += 1
            begun = time.perf_counter_ns()
            given = self._given(inputs, targets)
            self.spent_ns += time.perf_counter_ns() - begun
            if len(inputs[0]) == self._size:
                self._previous = inputs
            yield given, targets

    def _given(self, inputs: list[torch.Tensor], targets: torch.Tensor) -> list[torch.Tensor]:
        """The batch, or a fresh one in its place."""
        fresh, watched = self._position in self._fresh, self._position in self._watched
        if not (fresh or watched) or len(inputs[0]) != self._size or self._previous is None:
            return inputs
        given = inputs
        if fresh:
            shift = self._chance.randint(1, max(1, self._size - 1))
            given = splice(inputs, self._previous, self._chance.uniform(0.25, 0.75), shift)
            given = [new.pin_memory() if old.is_pinned() else new for new, old in zip(given, inputs, strict=True)]
        chosen = self._chance.sample(range(self._size), min(ROWS, self._size))
        rows = [[tensor[row : row + 1].clone() for tensor in given] for row in chosen]
        self._noted[self._position] = Noted(self._position, rows, chosen, inputs if fresh else None, targets)
        return given

    def takes(self, outputs: list[torch.Tensor]) -> bool:
        """Keep what was answered to the next batch, if it is remembered; whether that was a fresh one."""
        self._answered += 1
        noted = self._noted.get(self._answered)
        if noted is None:
            return False
        noted.answers = [[output[row : row + 1].clone() for output in outputs] for row in noted.chosen]
        return noted.held is not None

    @property
    def noted(self) -> list[Noted]:
        """All that are remembered, in order."""
        return list(self._noted.values())
