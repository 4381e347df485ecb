"""What a rank loads, in processes of its own or in none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from proofmark.errors import StepError
from proofmark.rules.config import EffectiveConfig
from proofmark.training.feeding.loading import Planned, RankLoader
from tests.unit.training.tokens import Sequences

if TYPE_CHECKING:
    from proofmark.case import Batch


class Differentiable(Sequences):
    def __getitems__(self, indices: list[int]) -> Batch:
        inputs, targets = super().__getitems__(indices)
        return [each.float().requires_grad_() for each in inputs], targets


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_that_requires_a_gradient_leaves_a_worker(workers: int) -> None:
    (batch,) = RankLoader(Differentiable(), workers).load([[0, 1]])
    assert not any(each.requires_grad for each in (*batch[0], batch[1]))


class Unreadable(Sequences):
    def __getitems__(self, indices: list[int]) -> Batch | StepError:  # type: ignore[override]
        return StepError("sample 3 can't be read")


class Silent(Sequences):
    def __getitems__(self, indices: list[int]) -> Batch:
        class Wordless(Exception):
            def __str__(self) -> str:
                raise SystemExit(3)

        raise Wordless


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("data, said", [(Unreadable(), "sample 3 can't be read"), (Silent(), "Wordless: ")])
def test_what_a_data_set_says_of_its_failure_is_heard(data: Sequences, said: str, workers: int) -> None:
    with pytest.raises(StepError) as raised:
        list(RankLoader(data, workers).load([[0, 1]]))
    assert str(raised.value) == said


class Batched(Sequences):
    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __getitems__(self, indices: list[int]) -> Any:
        return self._batch


ONES = torch.ones(2, 3)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    "batch, said",
    [
        ({"input_ids": ONES, "labels": ONES}, "a batch is a dict; expected (inputs, targets)"),
        (([ONES], ONES, ONES), "a batch is a tuple of 3 "),
        (({"input_ids": ONES}, ONES), "inputs are a dict; expected a list of tensors, one per argument"),
        ((ONES, ONES), "inputs are a tensor (2, 3); expected a list of tensors, one per argument"),
        (([ONES], [1, 2]), "targets are a list of 2 (an int, an int); expected a tensor"),
    ],
    ids=["dict", "three", "inputs by name", "one input", "targets"],
)
def test_what_is_no_batch_is_told_of_its_method(batch: Any, said: str, workers: int) -> None:
    with pytest.raises(StepError) as raised:
        list(RankLoader(Batched(batch), workers).load([[0, 1]]))
    assert str(raised.value).startswith(f"build_dataset: {said}")


class Nameless(Sequences):
    identity: Any = None


def test_data_that_does_not_say_what_it_is_is_told_of_its_method() -> None:
    case: Any = SimpleNamespace(build_dataset=lambda config, split: Nameless())
    config = EffectiveConfig("training", "tokens", "embedded", "acme", {}, {"num_workers": 0})
    with pytest.raises(StepError, match="^build_dataset: the data set of 'train', a Nameless, has no `identity`; "):
        Planned.of(case, config, 0, 1, 0)
