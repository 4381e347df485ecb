"""An order that nobody can know, and batches that nobody has seen."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler

from proofmark.errors import StepError
from proofmark.measuring.drawn import Order, drawn_anew, loaded_here
from proofmark.measuring.mixed import ENOUGH, MOST, ROWS, SHARE, Mixed
from proofmark.measuring.rehearsal import first_batch
from suites.data.loading import BatchLoader
from tests.unit.measuring.test_probes import Items, Walker, collate

ITEMS, SIZE = 403, 4


def rows(batches: Any) -> list[list[int]]:
    return [inputs[0].tolist() for inputs, _ in batches]


def test_every_sample_once_a_pass_in_another_order_each_time() -> None:
    loader, order = drawn_anew(DataLoader(Items(ITEMS), batch_size=SIZE, collate_fn=collate))  # type: ignore[arg-type]
    assert order is not None
    first, second = rows(loader), rows(loader)
    for each in (first, second):
        assert [len(batch) for batch in each] == [SIZE] * 100 + [3] and len(loader) == 101
        assert sorted(chain(*each)) == list(range(ITEMS))
    assert first != second
    seeds = order.take_seeds()
    again = [torch.randperm(ITEMS, generator=torch.Generator().manual_seed(seed)).tolist() for seed in seeds]
    assert again == [list(chain(*first)), list(chain(*second))] and order.take_seeds() == []


@pytest.mark.parametrize("workers", [0, 2])
def test_passes_run_on_so_that_no_batch_is_short(workers: int) -> None:
    plain: Any = DataLoader(Items(ITEMS), batch_size=SIZE, collate_fn=collate, num_workers=workers)  # type: ignore[arg-type]
    loader, order = drawn_anew(plain)
    assert order is not None
    with order.running_on(3):
        batches = [batch for _ in range(3) for batch in rows(loader)]
    assert [len(batch) for batch in batches] == [SIZE] * 303
    drawn = list(chain(*batches))
    passes = [drawn[start : start + ITEMS] for start in (0, ITEMS, 2 * ITEMS)]
    assert all(sorted(each) == list(range(ITEMS)) for each in passes) and passes[0] != passes[1]
    assert len(drawn) == 3 * ITEMS + 3 and len(order.take_seeds()) == 3
    assert [len(batch) for batch in rows(loader)] == [SIZE] * 100 + [3], "a pass alone is one of the data"


def test_a_round_that_was_left_leaves_nothing_to_the_next_pass() -> None:
    order = Order(ITEMS, SIZE)
    with order.running_on(3):
        list(order)
    assert sorted(chain(*order)) == list(range(ITEMS))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_pass_that_is_bounded_or_ended_leaves_nothing_to_be_loaded(workers: int) -> None:
    """What a reader leaves half-way, persistent workers load on, and the next pass waits for them."""
    plain: Any = DataLoader(
        Items(ITEMS),  # type: ignore[arg-type]
        batch_size=SIZE,
        collate_fn=collate,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    loader, order = drawn_anew(plain)
    assert order is not None
    for wanted in (1, 7):
        with order.at_most(wanted):
            assert len(rows(loader)) == wanted
    taken = 0
    for taken, _ in enumerate(loader, 1):
        if taken == 3:
            order.end()
    assert taken == 3 + workers * (plain.prefetch_factor or 0), "what was being loaded still comes"
    assert len(rows(loader)) == 101, "the next pass is whole"


def test_data_of_less_than_a_batch_is_one() -> None:
    order = Order(3, 8)
    with order.running_on(2):
        assert [sorted(batch) for _ in range(2) for batch in order] == [[0, 1, 2]] * 2


def test_what_the_loader_does_otherwise_it_still_does() -> None:
    loader: Any = BatchLoader(Items(40, broken=True), batch_size=4, collate_fn=collate, num_workers=0)  # type: ignore[arg-type]
    drawn, _ = drawn_anew(loader)
    assert type(drawn) is BatchLoader
    with pytest.raises(StepError, match="truncated image"):
        next(iter(drawn))


def test_a_loader_that_is_not_torchs_is_left_alone() -> None:
    loader: Any = Walker(5)
    assert drawn_anew(loader) == (loader, None) and loaded_here(loader) is loader


def test_for_a_look_at_the_first_batch_no_worker_is_started() -> None:
    loader: Any = BatchLoader(  # type: ignore[no-untyped-call]
        Items(40), batch_size=4, collate_fn=collate, num_workers=3, persistent_workers=True
    )
    here = loaded_here(loader)
    assert rows(here) == [list(range(start, start + 4)) for start in range(0, 40, 4)] and len(here) == len(loader)
    assert loader._iterator is None and not multiprocessing.active_children()
    assert type(here) is BatchLoader and loaded_here(here) is here


@pytest.mark.parametrize(
    "asked", [{"drop_last": True}, {"sampler": range(2)}, {"sampler": RandomSampler(range(3), num_samples=2)}]
)
def test_the_first_batch_is_as_large_as_those_that_are_drawn(asked: dict[str, Any]) -> None:
    """Whatever would draw it otherwise: of those samples every pass has all, in batches of that size."""
    loader: Any = DataLoader(Items(3), batch_size=4, collate_fn=collate, **asked)  # type: ignore[arg-type]
    drawn, _ = drawn_anew(loader)
    assert rows([first_batch(loaded_here(loader))]) == [[0, 1, 2]] and [len(batch) for batch in rows(drawn)] == [3]


class Counted:
    """Batches of rows that say which sample they are, twice."""

    def __init__(self, items: int, size: int) -> None:
        self.dataset: Any = range(items)
        self.batches = [list(range(start, min(start + size, items))) for start in range(0, items, size)]

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches:
            samples = torch.tensor(batch)
            yield [torch.stack([samples, samples], 1).float()], samples


def full(loader: Counted, passes: int = 1) -> list[int]:
    """Places of batches that are not short, where each pass has its own."""
    sizes = [len(batch) for batch in loader.batches] * passes
    return [place for place, size in enumerate(sizes) if size == len(loader.batches[0])]


def is_fresh(inputs: list[torch.Tensor]) -> bool:
    return bool((inputs[0] != inputs[0].round()).any())


def test_some_batches_of_a_round_give_way_to_fresh_ones() -> None:
    loader = Counted(ITEMS, SIZE)
    mixed = Mixed(loader, full(loader, 2), next(iter(loader))[0])
    fresh: list[int] = []
    for number, (inputs, targets) in enumerate(batch for _ in range(2) for batch in mixed):
        if is_fresh(inputs):
            fresh.append(number)
        else:
            assert inputs[0][:, 0].tolist() == targets.tolist()
        assert mixed.takes([inputs[0] * 10]) == is_fresh(inputs)
    noted = mixed.noted
    assert fresh == [each.position for each in noted if each.held is not None]
    assert 0 < len(fresh) <= 2 * (202 // SHARE) and len(noted) > len(fresh)
    for each in noted:
        assert len(each.rows) == len(each.answers) == ROWS
        assert all(torch.equal(asked[0] * 10, answer[0]) for asked, answer in zip(each.rows, each.answers, strict=True))
        if each.held is not None:
            assert each.held[0][0][:, 0].tolist() == each.held[1].tolist(), "the data's own, to be answered afterwards"
    assert mixed.spent_ns > 0


def test_of_large_answers_no_more_are_held_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which ones is left to chance: an engine that knew would answer the others otherwise."""
    monkeypatch.setattr("proofmark.measuring.mixed.HELD", 5 * ROWS * 4000)
    loader, places = Counted(ITEMS, SIZE), [0] * 101
    for _ in range(80):
        mixed = Mixed(loader, full(loader), next(iter(loader))[0])
        for inputs, _targets in mixed:
            mixed.takes([inputs[0][:, :1].expand(-1, 1000)])
        kept = [each.position for each in mixed.noted if each.answers]
        assert len(kept) == 5 < len(mixed.noted) and any(each.held for each in mixed.noted)
        for each in kept:
            places[each] += 1
    assert 0.35 < sum(places[:50]) / sum(places) < 0.65


class Refilled(Counted):
    """One buffer for all batches."""

    def __iter__(self) -> Iterator[Any]:
        inputs, targets = torch.zeros(SIZE, 2), torch.zeros(SIZE, dtype=torch.long)
        for (new,), samples in super().__iter__():
            yield [inputs[: len(new)].copy_(new)], targets[: len(new)].copy_(samples)


def test_what_gave_way_is_held_in_copies() -> None:
    loader = Refilled(ITEMS, SIZE)
    mixed = Mixed(loader, full(loader), torch.zeros(1, SIZE, 2).unbind())
    list(mixed)
    held = {each.position: each.held for each in mixed.noted if each.held is not None}
    assert len(held) > 5
    for position, (inputs, targets) in held.items():
        assert inputs[0][:, 0].tolist() == targets.tolist() == loader.batches[position]


def test_right_before_a_fresh_batch_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the referee does for it comes a call earlier, or after its own: where the next one is fresh too, as often as
    where it isn't."""
    done: list[str] = []
    monkeypatch.setattr("proofmark.measuring.mixed.splice", lambda one, *_: done.append("spliced") or one[:])
    loader = Counted(ITEMS, SIZE)
    mixed = Mixed(loader, full(loader), next(iter(loader))[0])
    mixed._watched = set()
    done.clear()  # for the first: before the round
    spliced_at = []
    for number, _ in enumerate(mixed):
        spliced_at += [number] * len(done)
        done.clear()
    assert {place + 1 for place in spliced_at} == mixed._fresh - {0}


@pytest.mark.parametrize("batches", [3, 24])
def test_of_single_samples_fresh_ones_are_none_of_the_data_wherever_they_come(batches: int) -> None:
    """Of the first there is one batch, and half of it would be the other half's."""
    loader = Counted(batches, 1)
    first, other = ([torch.tensor([[sample, sample]]).float()] for sample in (0, 1))
    for _ in range(20):
        mixed = Mixed(loader, full(loader), first, other=other)
        fresh = {number for number, (inputs, _) in enumerate(mixed) if is_fresh(inputs)}
        assert fresh == mixed._fresh


def test_no_place_tells_of_another() -> None:
    """An engine that has seen a fresh batch knows nothing of the next one, so that it can't answer that by heart."""
    loader = Counted(24 * SIZE, SIZE)
    places, first = full(loader), next(iter(loader))[0]
    rounds = [Mixed(loader, places, first)._fresh for _ in range(2000)]
    often = [sum(place in drawn for drawn in rounds) / 2000 for place in places]
    assert all(each == pytest.approx(1 / 3, abs=0.06) for each in often), "the first as well"
    followed = [place + 1 in drawn for drawn in rounds for place in drawn if place < places[-1]]
    assert sum(followed) / len(followed) == pytest.approx(1 / 3, abs=0.03)


@pytest.mark.parametrize("items, passes", [(12, 1), (9, 1), (5, 2), (4, 3), (403, 1)])
def test_a_round_with_enough_batches_has_one_that_is_fresh(items: int, passes: int) -> None:
    loader = Counted(items, SIZE)
    assert len(loader) * passes >= ENOUGH
    for _ in range(10):
        mixed = Mixed(loader, full(loader, passes), next(iter(loader))[0])
        for _ in range(passes):
            list(mixed)
        assert any(each.held for each in mixed.noted)


def test_where_they_come_nobody_can_know() -> None:
    loader = Counted(4000, SIZE)
    drawn = [
        frozenset(n for n, batch in enumerate(Mixed(loader, full(loader), next(iter(loader))[0])) if is_fresh(batch[0]))
        for _ in range(3)
    ]
    assert len(set(drawn)) == 3 and all(max(each) > 500 and len(each) < 1.5 * MOST for each in drawn)


@pytest.mark.parametrize("items, most", [(4, 0), (8, 1), (12, 2), (3, 0)])
def test_a_small_data_set_has_few(items: int, most: int) -> None:
    loader = Counted(items, SIZE)
    mixed = Mixed(loader, full(loader), next(iter(loader))[0])
    assert sum(is_fresh(inputs) for inputs, _ in mixed) <= most
