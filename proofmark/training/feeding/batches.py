"""Which samples a rank trains on: every sample once per epoch, at any world size, from any point on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LISTED = 4096
"""Samples of an epoch's order that are a list at once."""


@dataclass(frozen=True)
class Share:
    """A rank's part of one micro-batch: what it computes on, and how many samples of that count.

    A rank without samples computes on a borrowed one, of which none counts, to be there when gradients are exchanged.
    A sample alone comes twice, which leaves its mean loss as it is: batch normalisation can't train on one.
    """

    indices: list[int]
    samples: int

    def total(self, each: torch.Tensor) -> int:
        """The sum over its samples of what `each` of those computed has, (computed,)."""
        return int(each[: self.samples].sum())


class GlobalBatches:
    """The order of samples, a function of seed and epoch alone.

    The global batch number b of an epoch is the b-th stretch of a permutation, whatever the world size; the last
    one is short. Ranks take every world-th sample of it.
    """

    def __init__(self, items: int, global_batch: int, world: int, accumulation: int, seed: int) -> None:
        self.items, self.global_batch = items, global_batch
        self._world, self._accumulation, self._seed = world, accumulation, seed

    def __len__(self) -> int:
        """Global batches, so optimizer steps, per epoch."""
        return -(-self.items // self.global_batch)

    def steps(self, epochs: int, limit: int | None) -> int:
        """Optimizer steps of as many epochs; no more than reach `limit` samples, where there is one."""
        if limit is None or limit >= epochs * self.items:
            return epochs * len(self)
        whole, rest = divmod(limit, self.items)
        return whole * len(self) + -(-rest // self.global_batch)

    def size(self, batch: int) -> int:
        """Samples of a global batch."""
        return min(self.global_batch, self.items - batch * self.global_batch)

    def shares(self, epoch: int, rank: int, first: int = 0) -> Iterator[list[Share]]:
        """The rank's micro-batches of each global batch of an epoch, from number `first` on."""
        import torch

        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
        order = torch.randperm(self.items, generator=generator)  # a list would be five times as large
        stretch = max(1, LISTED // self.global_batch) * self.global_batch
        for begin in range(first * self.global_batch, self.items, stretch):
            listed: list[int] = order[begin : begin + stretch].tolist()
            for at in range(0, len(listed), self.global_batch):
                chosen = listed[at : at + self.global_batch]
                mine = chosen[rank :: self._world]
                yield [_share(mine[i :: self._accumulation], chosen[0]) for i in range(self._accumulation)]


def _share(indices: list[int], borrowed: int) -> Share:
    computed = indices or [borrowed]
    return Share(computed if len(computed) > 1 else 2 * computed, len(indices))


def evaluation_batches(items: int, batch_size: int, rank: int, world: int) -> tuple[list[list[int]], int]:
    """A rank's batches of an evaluation, and how many of them count: over all ranks every sample exactly once.

    All ranks get equally many, since a sharded model needs them all at each call: what is missing is a borrowed sample.
    """
    mine = list(range(rank, items, world))
    batches = [mine[start : start + batch_size] for start in range(0, len(mine), batch_size)]
    longest = -(-len(range(0, items, world)) // batch_size)
    return batches + [[0]] * (longest - len(batches)), len(batches)
