"""An engine that recognises its model, by what it answers or by how fast it is, is found by a second compilation."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch

from proofmark.measuring.honesty import recognition
from proofmark.measuring.precision import perturbed
from tests.unit.inference.cheating_engines import WORK, Answer, Data

pytestmark = [pytest.mark.quiet, pytest.mark.usefixtures("one_thread")]

Engine = Callable[[list[torch.Tensor]], Answer]


def compiled(model: torch.nn.Module, seconds: float = WORK) -> Engine:
    @torch.no_grad()
    def engine(inputs: list[torch.Tensor]) -> Answer:
        time.sleep(seconds)
        return [model(inputs[0])], 0.0

    return engine


def failed(engine: Engine, other: Engine) -> list[str]:
    return [check.name for check in recognition(Data().loader, engine, other, lambda: None) if not check.passed]


@pytest.fixture
def model() -> torch.nn.Module:
    return Data().model


def test_an_honest_compiler_passes(model: torch.nn.Module) -> None:
    assert failed(compiled(model), compiled(perturbed(model, 0))) == []


def test_answers_of_a_known_model_are_found(model: torch.nn.Module) -> None:
    assert failed(compiled(model), compiled(model)) == ["uses its weights"]


def test_speed_of_a_known_model_is_found(model: torch.nn.Module) -> None:
    assert failed(compiled(model, 0.0), compiled(perturbed(model, 0), 5 * WORK)) == ["knows no weights"]


def test_perturbed_weights_are_others_and_the_same_every_time(model: torch.nn.Module) -> None:
    one, again = perturbed(model, 0), perturbed(model, 0)
    assert not torch.equal(one.weight, model.weight)
    assert torch.equal(one.weight, again.weight)
    assert not torch.equal(one.weight, perturbed(model, 1).weight)
