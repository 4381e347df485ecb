"""How far answers may be from the framework's, and that every call of an honesty round is looked at."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from proofmark.measuring.agreement import AT_ONCE, BUDGET, KEPT, ROWS, Answers, distance, farthest
from proofmark.measuring.honesty import TOLERANCE, probe
from proofmark.measuring.probes import Call
from tests.unit.inference.cheating_engines import Answer, Data

pytestmark = pytest.mark.usefixtures("one_thread")


def test_distance() -> None:
    wanted = torch.eye(4)
    assert distance(wanted.clone(), wanted) == 0
    assert distance(wanted.roll(1, 0), wanted) > 1
    assert distance(wanted * float("nan"), wanted) == float("inf")
    assert distance(wanted[:2], wanted) == float("inf")
    assert distance(torch.zeros(2, 2), torch.zeros(2, 2)) == 0


def test_equal_infinities_are_no_distance_and_tell_of_none() -> None:
    """A model may mask a place, or take the logarithm of nothing; where it does so is part of its answer."""
    inf = float("inf")
    wanted = torch.tensor([[0.0, -inf, 1.0], [0.0, -inf, 3.0], [-inf, inf, 5.0]])
    assert distance(wanted.clone(), wanted) == 0
    near = wanted + torch.tensor([[0.0, 0.0, 0.1]])
    assert distance(near, wanted) == pytest.approx(0.1 / (4 / 3), rel=1e-5), "1, 3 and 5 lie 4/3 from their mean"
    for wrong in (0.0, inf, float("nan")):
        assert distance(torch.where(wanted == -inf, wrong, wanted), wanted) == inf
    assert distance(torch.where(wanted == 1, -inf, wanted), wanted) == inf
    assert distance(wanted[:, :1] * 0, wanted[:, :1]) == inf


def test_where_only_infinities_are_how_far_samples_lie_apart_is_not_known() -> None:
    masked = torch.full((2, 2), float("-inf"))
    assert distance(masked.clone(), masked) == 0
    assert distance(torch.zeros(2, 2), torch.zeros(2, 2), masked) == 0
    assert distance(torch.ones(2, 2), torch.zeros(2, 2), masked) == float("inf")


def test_distance_from_rows_that_are_all_alike_is_in_units_of_their_length() -> None:
    wanted = torch.ones(3, 4)
    assert distance(wanted * 1.5, wanted) == pytest.approx(0.5)
    assert distance(wanted[:1] * 1.5, wanted[:1]) == pytest.approx(0.5)
    assert distance(torch.ones(3, 4), torch.zeros(3, 4)) == float("inf")


def test_distance_is_in_units_of_how_far_rows_lie_apart_however_near_those_are() -> None:
    wanted = torch.tensor([[0.0], [0.5]])
    assert distance(wanted + 0.5, wanted) == pytest.approx(2.0)


def test_names_have_no_distance_and_what_is_beside_them_has_its_own() -> None:
    names, near, far = torch.arange(2)[:, None], torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [10.0]])
    assert farthest([names + 1], [names], [names]) == 0.0
    assert farthest([names, near + 1], [names, near], [names, far]) == pytest.approx(0.2)


def test_answers_are_looked_at_when_five_calls_have_gone_by() -> None:
    tensor = torch.ones(1, 1)
    call = Call(0.001, [tensor], [tensor], [tensor], [tensor + 1])
    answers = Answers()
    answers.hold([call] * 5)
    assert answers.changed == 0
    answers.hold([call])
    assert answers.changed == 1


@pytest.mark.parametrize("garbage", ["highest", "names"])
def test_garbage_is_seen_in_numbers_and_in_their_names(garbage: str) -> None:
    torch.manual_seed(4)
    weights = torch.randn(3, 20 * 50)

    def likeliest(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        return [*(inputs[0] @ weights).view(-1, 20, 50).max(-1)]

    for cheats in (False, True):
        answers = Answers()
        for _ in range(32):
            inputs = torch.randn(1, 3)
            highest, names = likeliest([inputs])
            names[0, 0] = (names[0, 0] + 25) % 50  # a near tie
            if cheats and garbage == "highest":
                highest = highest + 1
            elif cheats:
                names = torch.randint(50, names.shape)
            answers.take_row([inputs], [highest, names])
        assert (answers.worst(likeliest, None) > max(TOLERANCE.values())) == cheats


def calls(count: int, rows: int = 16, wrong: int | None = None) -> list[Call]:
    """Calls that answer twice their inputs; at `wrong` nothing but zeros."""
    made = []
    for number in range(count):
        inputs = [torch.randn(rows, 3)]
        answer = [inputs[0] * 2 + (9 if number == wrong else 0)]
        made.append(Call(0.001, inputs, [inputs[0].clone()], answer, [answer[0].clone()]))
    return made


def twice(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    return [inputs[0] * 2]


@pytest.mark.parametrize("wrong", [0, 1, 80, 159])
def test_garbage_in_any_one_of_160_calls_is_seen(wrong: int) -> None:
    answers = Answers()
    for call in calls(160, wrong=wrong):
        answers.hold([call])
    answers.finish()
    assert answers.worst(twice, None) > max(TOLERANCE.values())


def test_rows_are_bounded_in_number() -> None:
    answers, asked = Answers(), []

    def ask(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        asked.append(len(inputs[0]))
        return twice(inputs)

    answers.hold(calls(160))
    answers.finish()
    assert answers.taken == BUDGET + 160 - BUDGET // ROWS
    assert answers.worst(ask, None) == 0
    assert BUDGET + 160 - BUDGET // ROWS <= sum(asked) < BUDGET + 160 and set(asked) == {16}


def test_of_more_rows_than_are_kept_each_is_as_likely() -> None:
    kept = [0] * 12
    for _ in range(400):
        answers = Answers(3)
        for number in range(12):
            answers.take_row([torch.tensor([number])], [torch.zeros(1, 1)])
        assert answers.taken == 12
        answers.worst(lambda asked: [asked[0][:, None] * 0], None)
        for (row,) in answers._inputs:
            kept[int(row)] += 1
    assert sum(kept) == 1200 and min(kept) > 50 and max(kept) < 160


def test_few_rows_are_held_to_how_far_other_samples_lie_apart() -> None:
    """Two that are almost the same, as of one class, and answers a rounding away."""
    answers = Answers()
    for value in (1.0, 1.001):
        answers.take_row([torch.tensor([[value, 1.0]])], [torch.tensor([[2.002 * value, 2.0]])])
    company = [[torch.randn(16, 2)]]
    assert answers.worst(twice, None) > 1 and answers.worst(twice, None, company) < 0.01
    for _ in range(AT_ONCE - 2):
        answers.take_row([torch.ones(1, 2)], [torch.ones(1, 2)])
    asked: list[int] = []
    answers.worst(lambda inputs: asked.append(len(inputs[0])) or twice(inputs), None, company)
    assert asked == [AT_ONCE], "of enough rows their own"


def test_one_row_is_looked_at_too() -> None:
    answers = Answers()
    answers.take_row([torch.ones(1, 2)], [torch.ones(1, 2)])
    assert answers.worst(twice, 1) == pytest.approx(0.5)


@pytest.mark.parametrize("batch", [1, 7, 16, 500])
def test_an_engine_is_asked_by_its_own_batch_size(batch: int) -> None:
    answers, asked = Answers(), set()

    def ask(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        asked.add(len(inputs[0]))
        return twice(inputs)

    answers.hold(calls(5, rows=batch))
    answers.finish()
    assert answers.worst(ask, batch) == 0 and asked == {batch}


@pytest.mark.parametrize("late", [0, 30])
def test_an_answer_or_an_input_that_changes_later_is_seen(late: int) -> None:
    answers, made = Answers(), calls(40)
    made[late].outputs[0][3, 2] += 1
    made[late].inputs[0][3, 2] += 1
    answers.hold(made)
    assert (answers.changed, answers.written) == ((1, 1) if late < 40 - KEPT else (0, 0))
    answers.finish()
    assert (answers.changed, answers.written) == (1, 1)


@pytest.mark.parametrize(
    "later", [lambda answer: answer[:, :2], lambda answer: answer.view(torch.int32), lambda answer: answer.double()]
)
def test_an_answer_that_takes_another_form_later_is_seen(later: Callable[[torch.Tensor], torch.Tensor]) -> None:
    answers, (call,) = Answers(), calls(1)
    call.outputs[0] = later(call.outputs[0])
    answers.hold([call])
    answers.finish()
    assert (answers.changed, answers.written) == (1, 0)


def test_an_answer_of_another_form_than_the_rest_is_infinitely_far() -> None:
    answers, made = Answers(), calls(4)
    made[2].outputs[0] = made[2].answer[0] = torch.zeros(16, 4)
    answers.hold(made)
    answers.finish()
    assert answers.worst(twice, None) == float("inf")


def test_a_student_is_not_the_model_in_int8() -> None:
    """Half as large, right in eight of ten images: the former bound, 0.7, let it through."""
    torch.manual_seed(7)
    images, weights = torch.randn(2000, 32), torch.randn(32, 4) @ torch.randn(4, 10) + 0.6 * torch.randn(32, 10)
    left, values, right = torch.linalg.svd(weights, full_matrices=False)
    student = images @ (left[:, :5] * values[:5] @ right[:5])
    scale = weights.abs().max() / 127
    wanted, rounded = images @ weights, images @ ((weights / scale).round() * scale)
    assert (student.argmax(-1) == wanted.argmax(-1)).float().mean() > 0.75
    assert TOLERANCE["int8"] < distance(student[:16], wanted[:16]) < 0.7
    assert distance(rounded, wanted) < TOLERANCE["int8"] / 3


@pytest.mark.parametrize(
    "declared, computed",
    [("fp32", torch.float16), ("tf32", torch.bfloat16), ("fp16", torch.float8_e4m3fn), ("bf16", torch.float8_e5m2)],
)
def test_a_coarser_number_than_the_declared_one_is_caught(declared: str, computed: torch.dtype) -> None:
    torch.manual_seed(5)
    weights = [torch.randn(32, 32) / 4 for _ in range(8)]

    def through(form: torch.dtype) -> Callable[[list[torch.Tensor]], Answer]:
        def compute(inputs: list[torch.Tensor]) -> Answer:
            (state,) = inputs
            for weight in weights:
                state = torch.relu(state.to(form).float() @ weight.to(form).float())
            return [state], 0.0

        return compute

    checks, *_ = probe(Data().loader, through(computed), lambda: None, through(torch.float32), declared)
    assert [check.name for check in checks if not check.passed] == ["answers new inputs"]
