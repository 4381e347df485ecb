"""What an engine is probed with: batches from everywhere in the data, and inputs that nobody has seen."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from proofmark.errors import StepError
from proofmark.measuring.audible_loader import AudibleLoader
from proofmark.measuring.pace import MOST
from proofmark.measuring.probes import chains, full_batches, pairs, splice
from suites.data.loading import BatchLoader

CHANCE = random.SystemRandom()


class Items:
    """Samples counted from 0, and which of them were loaded."""

    def __init__(self, count: int, broken: bool = False) -> None:
        self.count, self.broken, self.loaded = count, broken, list[int]()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        self.loaded.append(index)
        return index

    def __getitems__(self, indices: list[int]) -> Any:
        return StepError("truncated image") if self.broken else [self[index] for index in indices]


def collate(samples: list[int]) -> Any:
    return samples if isinstance(samples, StepError) else ([torch.tensor(samples)], torch.tensor(samples))


class Walker:
    """A loader that isn't torch's, with a short batch at its end."""

    def __init__(self, batches: int) -> None:
        self.dataset = range(batches * 4 - 1)
        self.walks = 0

    def __len__(self) -> int:
        return (len(self.dataset) + 3) // 4

    def __iter__(self) -> Iterator[Any]:
        self.walks += 1
        for start in range(0, len(self.dataset), 4):
            yield collate(list(self.dataset)[start : start + 4])


def starts(loader: Any, count: int) -> list[int]:
    """The first sample of so many batches, each whole and as the data has it."""
    drawn = [inputs[0].tolist() for inputs in islice(full_batches(loader, CHANCE), count)]
    assert all(batch == list(range(batch[0], batch[0] + 4)) and batch[0] % 4 == 0 for batch in drawn)
    return [batch[0] for batch in drawn]


def test_batches_come_from_everywhere_in_the_data_and_no_others_are_loaded() -> None:
    items = Items(4 * 1000 + 3)
    loader = DataLoader(items, batch_size=4, collate_fn=collate)  # type: ignore[arg-type]
    found = starts(loader, 40)
    assert len(set(found)) == 40 and max(found) > 2000 and len(items.loaded) == 160


def test_each_batch_that_is_drawn_is_a_sign_of_life() -> None:
    items, signs = Items(4 * 1000), list[str]()
    loader: Any = DataLoader(items, batch_size=4, collate_fn=collate)  # type: ignore[arg-type]
    starts(AudibleLoader(loader, lambda alive: signs.append(alive), [torch.zeros(4)]), 40)
    assert signs == ["calls"] * 40 and len(items.loaded) == 160


def test_when_the_data_ends_it_begins_again_in_another_order() -> None:
    found = starts(DataLoader(Items(4 * 10 + 3), batch_size=4, collate_fn=collate), 30)  # type: ignore[arg-type]
    assert [sorted(found[first : first + 10]) for first in (0, 10, 20)] == [list(range(0, 40, 4))] * 3
    assert not found[:10] == found[10:20] == found[20:]


def test_a_loader_that_can_only_be_walked_gives_batches_from_everywhere() -> None:
    loader = Walker(200)
    assert max(starts(loader, 20)) > 200 and loader.walks <= 6


@pytest.mark.parametrize("batches", [2, 3, 4])
def test_a_small_data_set_is_enough(batches: int) -> None:
    assert len(list(pairs(Walker(batches), CHANCE))) == MOST  # type: ignore[arg-type]
    loader: Any = DataLoader(Items(batches), batch_size=1, collate_fn=collate)  # type: ignore[arg-type]
    assert len(list(pairs(loader, CHANCE))) == MOST


def test_one_batch_that_is_all_the_data_is_enough() -> None:
    loader: Any = DataLoader(Items(3), batch_size=4, collate_fn=collate)  # type: ignore[arg-type]
    assert all(len(inputs[0]) == len(other[0]) == 3 for inputs, other in pairs(loader, CHANCE))


def test_a_loader_with_a_way_of_its_own_is_walked() -> None:
    class Doubled(DataLoader[Any]):
        def __init__(self) -> None:
            super().__init__(Items(40), batch_size=4, collate_fn=collate)  # type: ignore[arg-type]

    assert len(set(starts(Doubled(), 10))) >= 5


def test_what_cannot_be_read_is_told_as_the_loader_tells_it() -> None:
    with pytest.raises(StepError, match="truncated image"):
        next(full_batches(BatchLoader(Items(40, broken=True), batch_size=4, collate_fn=collate), CHANCE))  # type: ignore[arg-type]


def test_spliced_inputs_are_new_and_of_the_same_form() -> None:
    one, other = torch.arange(24).reshape(4, 6), torch.arange(100, 124).reshape(4, 6)
    (spliced,) = splice([one], [other], 0.5, 1)
    assert spliced.shape == one.shape and spliced.dtype == one.dtype
    assert spliced[1].tolist() == [6, 7, 8, 103, 104, 105]


def test_no_part_of_a_blended_row_is_that_of_another() -> None:
    one, other = torch.arange(96.0).reshape(4, 3, 8), torch.arange(1000.0, 1096).reshape(4, 3, 8)
    for share in (0.25, 0.6, 0.75):
        (spliced,) = splice([one], [other], share, 1)
        torch.testing.assert_close(spliced, share * one + (1 - share) * other.roll(1, 0))
        assert bool((spliced > one.max()).all()) and bool((spliced < other.min()).all())


def test_where_a_mean_is_no_number_a_row_has_what_one_of_both_has() -> None:
    one, other = torch.tensor([[0.0, -torch.inf, 1.0, torch.inf]]), torch.tensor([[-torch.inf, 0.0, 3.0, -torch.inf]])
    (spliced,) = splice([one], [other], 0.5, 0)
    assert spliced.tolist() == [[0.0, -torch.inf, 2.0, -torch.inf]]


def test_rows_are_spliced_along_the_last_dimension_that_has_two_values() -> None:
    one, other = torch.arange(12).reshape(3, 4, 1), torch.arange(100, 112).reshape(3, 4, 1)
    (spliced,) = splice([one], [other], 0.5, 1)
    assert spliced.shape == one.shape and spliced[1].flatten().tolist() == [4, 5, 102, 103]
    (alone,) = splice([one[:, :1]], [other[:, :1]], 0.5, 1)
    assert torch.equal(alone, one[:, :1]), "of one value to a row nothing new can be made"


def test_two_chains_of_which_one_ends_with_a_repeat_in_memory_of_its_own() -> None:
    data, other = [torch.rand(8, 16)], [torch.rand(8, 16)]
    (before, known, once), (begun, new, again) = chains(data, other, random.SystemRandom())
    assert before is other and known is data
    assert torch.equal(new[0], again[0]) and new[0].data_ptr() != again[0].data_ptr()
    found = [data, other, once, begun, new]
    assert not any(torch.equal(one[0], two[0]) for index, one in enumerate(found) for two in found[:index])
