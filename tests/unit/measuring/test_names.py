"""Names: how many may be others than the reference's, and how near to being chosen those must have been."""

from __future__ import annotations

import math

import pytest
import torch

from proofmark.measuring.agreement import Answers
from proofmark.measuring.honesty import TOLERANCE
from proofmark.measuring.names import BOTH, SPARED, Names

pytestmark = pytest.mark.usefixtures("one_thread")
ROWS, PLACES, WORDS = 96, 64, 50


def held(answer: torch.Tensor, wanted: torch.Tensor, short: torch.Tensor | None = None) -> float:
    """The distance of names, of which `short` says by row and place how near they were."""
    names = Names(None if short is None else lambda inputs, _: [short[inputs[0][:, 0].long()]])
    rows = torch.arange(float(len(wanted)))[:, None]
    for begin in range(0, len(wanted), 16):
        these = slice(begin, begin + 16)
        names.add([rows[these]], [answer[these]], [wanted[these]], [wanted[these]])
    return names.distance()


@pytest.fixture
def scores() -> torch.Tensor:
    torch.manual_seed(2)
    return torch.randn(ROWS, PLACES, WORDS)


@pytest.mark.parametrize("form, precision", [(torch.float16, "fp16"), (torch.bfloat16, "bf16")])
def test_near_ties_change_places(scores: torch.Tensor, form: torch.dtype, precision: str) -> None:
    wanted, rounded = scores.argmax(-1), scores.to(form).argmax(-1)
    assert (rounded != wanted).any() and held(rounded, wanted) < TOLERANCE[precision] / 4


def test_an_output_without_places_has_no_name_that_could_differ() -> None:
    assert held(torch.empty(ROWS, 0, dtype=torch.int64), torch.empty(ROWS, 0, dtype=torch.int64)) == 0


def test_of_whatever_type(scores: torch.Tensor) -> None:
    wanted = scores.argmax(-1)
    assert held(wanted.int(), wanted) == held(wanted.to(torch.uint8), wanted) == 0
    assert held(wanted + 1, wanted) > 0.8, "49 is as far from 48 as from 0"


def test_one_place_says_nothing_and_two_do_at_full_precision(scores: torch.Tensor) -> None:
    wanted = scores[:, :1].argmax(-1)
    wrong = wanted.clone()
    wrong[0] += 1
    assert held(wrong, wanted) == 0
    wrong[1] += 1
    assert TOLERANCE["fp32"] < held(wrong, wanted) < TOLERANCE["tf32"]


def test_how_many_differ_is_less_four_deviations_of_chance() -> None:
    """In units of the share in which a row differs from the one before it: here each, then every other one."""
    for wanted, differ in ((torch.arange(8), 1.0), (torch.arange(8) // 2 % 2, 0.5)):
        names = Names()
        wrong = wanted[:, None] + (torch.arange(8) < 6)[:, None]
        names.add([wanted[:, None]], [wrong], [wanted[:, None]], [wanted[:, None]])
        assert names.distance() == pytest.approx((math.sqrt(4 + 5) - 2) ** 2 / 8 / differ)


def test_the_name_that_is_furthest_from_having_been_chosen_counts() -> None:
    wanted = torch.arange(4)[:, None]
    names = Names(lambda *_: [torch.tensor([[0.2], [0.9]])])
    names.add([wanted], [wanted + (wanted < 2)], [wanted], [wanted])
    assert names.distance() == pytest.approx(0.9 / 2)


def test_nearly_half_of_all_names_may_not_be_wrong(scores: torch.Tensor) -> None:
    wanted = scores.argmax(-1) + 1
    wrong = wanted.clone()
    wrong[:, : PLACES * 5 // 13] = 0
    assert held(wrong, wanted) > max(TOLERANCE.values())
    wrong = wanted.clone()
    wrong[: ROWS * 7 // 16] = 0
    assert held(wrong, wanted) > max(TOLERANCE.values())


@pytest.mark.parametrize("often", [0.0, 0.5, 0.9, 0.99])
def test_names_that_ignore_the_input_are_seen_however_often_they_are_right(often: float) -> None:
    torch.manual_seed(3)
    wanted = torch.randint(1, WORDS, (ROWS, PLACES)) * (torch.rand(ROWS, PLACES) >= often)
    assert held(torch.zeros_like(wanted), wanted) > max(TOLERANCE.values())
    assert held(torch.zeros_like(wanted), torch.zeros_like(wanted)) == 0
    assert held(torch.ones_like(wanted), torch.zeros_like(wanted)) > 0.9, "where no sample differs, of all"


@pytest.mark.parametrize("less", [0.05, 0.2, 0.5, math.inf, math.nan])
def test_a_few_names_are_held_to_how_near_they_were(scores: torch.Tensor, less: float) -> None:
    wanted = scores.argmax(-1)
    wrong, short = wanted.clone(), torch.full(wanted.shape, math.inf)  # of names that are right nobody asks
    wrong[::6, 7] += 1
    short[::6, 7] = less
    assert held(wrong, wanted) < TOLERANCE["fp16"], "so few tell nothing"
    assert held(wrong, wanted, short) == pytest.approx(math.inf if math.isnan(less) else less / BOTH)


def test_of_very_many_places_some_may_be_far_off(scores: torch.Tensor) -> None:
    wanted = scores.argmax(-1)
    spared = int(SPARED * wanted.numel())
    assert spared == 1
    for more in (0, 1):
        wrong, short = wanted.clone(), torch.zeros(wanted.shape)
        wrong[0, : spared + more] += 1
        short[0] = 1.0
        assert held(wrong, wanted, short) == pytest.approx(more / BOTH, abs=1e-4)


def test_a_case_that_cannot_say_has_its_names_counted(scores: torch.Tensor) -> None:
    wanted = scores.argmax(-1)
    names = Names(lambda *_: [])
    names.add([scores], [wanted + 1], [wanted], [wanted])
    assert names.distance() > 0.8


def test_each_output_is_looked_at(scores: torch.Tensor) -> None:
    wanted, first = scores.argmax(-1), scores[..., 0]
    names = Names(lambda _, outputs: [torch.zeros(outputs[1].shape), torch.ones(outputs[2].shape)])
    one = wanted.clone()
    one[0, :2] += 1
    names.add([scores], [first, wanted, one], [first, wanted, wanted], [first, wanted, wanted])
    assert names.distance() == 1 / BOTH
    assert Names().distance() == 0.0


def test_rows_of_another_kind_are_infinitely_far() -> None:
    """Numbers for names, names for numbers, and what is no number that there is an order of."""
    for form in (torch.float32, torch.complex64):
        answers = Answers()
        answers.take_row([torch.ones(1, 2)], [torch.ones(1, 2), torch.ones(1, 2).to(form)])
        assert answers.worst(lambda _: [torch.ones(1, 2), torch.ones(1, 2).long()], None) == math.inf


def test_labels_by_heart_in_one_place_of_twelve_are_seen() -> None:
    torch.manual_seed(6)
    weights = torch.randn(8, 12 * WORDS)

    def scored(inputs: list[torch.Tensor]) -> torch.Tensor:
        return (inputs[0] @ weights).view(-1, 12, WORDS)

    def shortfall(inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        logits = scored(inputs)
        given = logits.gather(-1, outputs[1].unsqueeze(-1)).squeeze(-1)
        return [(logits.amax(-1) - given) / logits.std(-1)]

    for near, seen in ((None, False), (shortfall, True)):
        answers = Answers()
        for number in range(96):
            inputs = [torch.randn(1, 8)]
            highest, names = scored(inputs).max(-1)
            if number % 6 == 0:
                names[0, 0] = (names[0, 0] + 7) % WORDS
            answers.take_row(inputs, [highest, names])
        found = answers.worst(lambda inputs: [*scored(inputs).max(-1)], None, (), near)
        assert (found > TOLERANCE["bf16"]) == seen
