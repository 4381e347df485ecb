"""Which samples a rank trains on: each once, at any world size, from any point on."""

from __future__ import annotations

from collections import Counter

import torch  # noqa: F401 (its import would exceed the first example's deadline)
from hypothesis import given
from hypothesis import strategies as st

from proofmark.training.feeding.batches import GlobalBatches, Share, evaluation_batches

SIZES = {"items": st.integers(1, 60), "global_batch": st.integers(1, 20), "world": st.integers(1, 5)}


def real(share: Share) -> list[int]:
    """A share's samples, without borrowed ones and the twin of a sample that is alone."""
    return sorted(set(share.indices)) if share.samples else []


@given(**SIZES, accumulation=st.integers(1, 3), epoch=st.integers(0, 3))
def test_every_sample_once(items: int, global_batch: int, world: int, accumulation: int, epoch: int) -> None:
    batches = GlobalBatches(items, global_batch, world, accumulation, seed=7)
    ranks = [list(batches.shares(epoch, rank)) for rank in range(world)]
    seen = Counter(index for rank in ranks for step in rank for share in step for index in real(share))
    assert seen == Counter(range(items))
    assert all(len(rank) == len(batches) and all(len(step) == accumulation for step in rank) for rank in ranks)
    for number in range(len(batches)):
        shares = [share for rank in ranks for share in rank[number]]
        assert all(share.samples == len(real(share)) for share in shares)
        assert sum(share.samples for share in shares) == batches.size(number)


@given(**SIZES)
def test_the_global_batch_is_the_same_at_any_world_size(items: int, global_batch: int, world: int) -> None:
    def batches(processes: int) -> list[list[int]]:
        made = GlobalBatches(items, global_batch, processes, 1, seed=3)
        ranks = [list(made.shares(0, rank)) for rank in range(processes)]
        return [sorted(i for rank in ranks for share in rank[n] for i in real(share)) for n in range(len(made))]

    assert batches(world) == batches(1)


@given(**SIZES, first=st.integers(0, 10))
def test_from_any_point_on(items: int, global_batch: int, world: int, first: int) -> None:
    batches = GlobalBatches(items, global_batch, world, 1, seed=1)
    assert list(batches.shares(2, 0, first)) == list(batches.shares(2, 0))[first:]


@given(**SIZES, epochs=st.integers(1, 4), limit=st.integers(1, 300) | st.none())
def test_a_schedule_ends_with_the_samples(
    items: int, global_batch: int, world: int, epochs: int, limit: int | None
) -> None:
    batches, steps, samples = GlobalBatches(items, global_batch, world, 1, seed=1), 0, 0
    while steps < epochs * len(batches) and (limit is None or samples < limit):
        samples += batches.size(steps % len(batches))
        steps += 1
    assert batches.steps(epochs, limit) == steps


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = [
        [index for step in GlobalBatches(50, 10, 1, 1, seed).shares(epoch, 0) for index in step[0].indices]
        for seed in (0, 1)
        for epoch in (0, 1)
    ]
    assert len({tuple(order) for order in orders}) == 4


@given(items=st.integers(1, 60), size=st.integers(1, 20), world=st.integers(1, 5))
def test_an_evaluation_takes_every_sample_once(items: int, size: int, world: int) -> None:
    parts = [evaluation_batches(items, size, rank, world) for rank in range(world)]
    assert len({len(batches) for batches, _ in parts}) == 1, "a sharded model needs all ranks at each call"
    seen = Counter(index for batches, count in parts for batch in batches[:count] for index in batch)
    assert seen == Counter(range(items))
