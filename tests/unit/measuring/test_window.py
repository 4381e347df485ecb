"""The compute window against answers that are none, or that put their work off until the clock has stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from proofmark.errors import StepError
from proofmark.measuring.window import check_answer, run_window

INPUTS = [torch.arange(4.0).unsqueeze(1)]


def nothing() -> None:
    pass


def answering(outputs: Any, foo_time: Any = 0.0) -> Callable[[list[torch.Tensor]], Any]:
    return lambda inputs: (outputs, foo_time)


class Trap:
    """Mixed into a type: whoever uses one of its methods has started work that was put off."""

    def works(self, *others: Any) -> Any:
        raise AssertionError("it was given time after the clock")

    __iter__ = __len__ = __getitem__ = __abs__ = __bool__ = __float__ = __add__ = __radd__ = works
    detach = cpu = to = clone = works


class LazyList(Trap, list[torch.Tensor]):
    """A list that computes when it is walked."""


class LazyTensor(Trap, torch.Tensor):
    """A tensor that computes when it is copied."""


class LazyFloat(Trap, float):
    """A foo_time that computes when it is made positive."""


class LazyTuple(Trap, tuple[Any, ...]):
    """An answer that computes when it is taken apart."""


@pytest.mark.parametrize(
    "returned, expected",
    [
        (LazyTuple(([torch.ones(4, 1)], 0.0)), "a LazyTuple; expected a tuple of outputs and foo_time"),
        (([torch.ones(4, 1)],), "a tuple of 1; expected a tuple of outputs and foo_time"),
        ([[torch.ones(4, 1)], 0.0], "a list of 2; expected a tuple of outputs and foo_time"),
        (None, "a NoneType; expected a tuple of outputs and foo_time"),
        ((LazyList([torch.ones(4, 1)]), 0.0), "a LazyList; expected a list of tensors"),
        (([], 0.0), "a list of 0; expected a list of tensors"),
        (((torch.ones(4, 1),), 0.0), "a tuple of 1; expected a list of tensors"),
        ((torch.ones(4, 1), 0.0), "a Tensor; expected a list of tensors"),
        (([torch.ones(4, 1).as_subclass(LazyTensor)], 0.0), "a LazyTensor; expected a plain, dense torch.Tensor"),
        (([torch.nn.Parameter(torch.ones(4, 1))], 0.0), "a Parameter; expected a plain, dense torch.Tensor"),
        (([torch.ones(4, 1).to_sparse()], 0.0), "a Tensor; expected a plain, dense torch.Tensor"),
        (([torch.ones(4, 1, device="meta")], 0.0), "a Tensor; expected a plain, dense torch.Tensor"),
        (([None], 0.0), "a NoneType; expected a plain, dense torch.Tensor"),
        (([torch.ones(3, 1)], 0.0), "one row for each of 4 samples"),
        (([torch.ones(4, 1), torch.ones(1)], 0.0), "output 1 has shape .*one row for each of 4 samples"),
        (([torch.ones(4, 1).sum()], 0.0), "one row for each of 4 samples"),
        (([torch.ones(4, 1)], LazyFloat(0.0)), "foo_time is a LazyFloat; expected a float"),
        (([torch.ones(4, 1)], 0), "foo_time is an int; expected a float"),
        (([torch.ones(4, 1)], False), "foo_time is a bool; expected a float"),
        (([torch.ones(4, 1)], None), "foo_time is a NoneType; expected a float"),
    ],
)
def test_what_is_no_answer_is_refused_before_anything_of_it_is_used(returned: Any, expected: str) -> None:
    with pytest.raises(StepError, match=expected):
        run_window(lambda inputs: returned, INPUTS, nothing)


@pytest.mark.parametrize("name", ["detach", "cpu", "to", "untyped_storage"])
def test_a_tensor_with_a_method_of_its_own_is_refused(name: str) -> None:
    output = torch.ones(4, 1)
    setattr(output, name, Trap().works)
    with pytest.raises(StepError, match=rf"methods of its own \({name}\): return output.detach\(\)"):
        check_answer(([output], 0.0), 4)
    assert check_answer(([torch.Tensor.detach(output)], 0.0), 4)


def test_what_torch_compile_notes_on_a_tensor_is_no_method() -> None:
    output = torch.ones(4, 1)
    output._dynamo_propagated_dynamic_indices = {0}  # type: ignore[attr-defined]
    assert check_answer(([output], 0.0), 4)


def test_an_engine_that_replaces_its_inputs_answers_for_the_rows_that_it_was_given() -> None:
    def swaps(inputs: list[torch.Tensor]) -> Any:
        inputs[0] = torch.ones(1, 1)
        return [torch.ones(1, 1)], 0.0

    with pytest.raises(StepError, match="one row for each of 4 samples"):
        run_window(swaps, list(INPUTS), nothing)


class Clock:
    """Time that passes only where something is said to take it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        monkeypatch.setattr("proofmark.measuring.window.time.perf_counter_ns", lambda: self.now)

    def take(self, nanoseconds: int) -> None:
        self.now += nanoseconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_the_engine_the_wait_and_the_copy_are_under_the_clock(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    detach = torch.Tensor.detach

    def engine(inputs: list[torch.Tensor]) -> Any:
        clock.take(100)
        return [inputs[0] * 2], 0.0

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        clock.take(1)
        return detach(tensor)

    monkeypatch.setattr(torch.Tensor, "detach", copied)
    assert run_window(engine, INPUTS, lambda: clock.take(10)).nanoseconds == 111


def test_the_answer_is_what_it_was_when_the_clock_was_stopped() -> None:
    output = torch.zeros(4, 1)
    window = run_window(answering([output]), INPUTS, nothing)
    output.fill_(1)
    assert window.answer[0].eq(0).all() and window.outputs[0] is output


def test_an_answer_that_is_differentiable_or_of_inference_mode_is_copied() -> None:
    with torch.inference_mode():
        inferred = torch.ones(4, 1)
    window = run_window(answering([torch.ones(4, 1, requires_grad=True), inferred]), INPUTS, nothing)
    assert not any(tensor.requires_grad or tensor.is_inference() for tensor in window.answer)


def test_the_copy_leaves_the_number_of_threads_alone() -> None:
    threads = torch.get_num_threads()
    run_window(answering([torch.ones(4, 1)]), INPUTS, nothing)
    assert torch.get_num_threads() == threads


def test_a_list_that_is_changed_later_is_not_the_one_that_was_looked_at() -> None:
    outputs = [torch.ones(4, 1)]
    window = run_window(answering(outputs), INPUTS, nothing)
    outputs.append(torch.ones(1))
    assert len(window.outputs) == len(window.answer) == 1


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = {*threading.enumerate()}  # one that an earlier test has left may end meanwhile
    yield
    assert not {*threading.enumerate()} - before
