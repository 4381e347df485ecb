"""Training by a recipe: deterministic, and told as it goes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from harness.config import EffectiveConfig
from harness.fit import Recipe, fit
from tests.unit.net import Net, Points

GOOD = {"epochs": 5, "batch_size": 8, "learning_rate": 0.1}


def config(**training: Any) -> EffectiveConfig:
    return EffectiveConfig("inference", "net", "embedded", "acme", {"training": GOOD | training, "seed": 0}, {})


def trained(**training: Any) -> tuple[torch.nn.Module, list[dict[str, Any]]]:
    told: list[dict[str, Any]] = []
    made = config(**training)
    torch.manual_seed(0)
    model = Net().create_model(made)
    fit(Net(), model, made, Recipe.model_validate(GOOD | training), lambda **figures: told.append(figures))
    return model, told


@pytest.mark.parametrize("schedule", ["one_cycle", "constant"])
def test_it_learns_and_leaves_the_model_ready_to_run(schedule: str) -> None:
    model, told = trained(schedule=schedule)
    assert not model.training
    right = sum(Net().evaluator([model(*inputs)], targets)[0] for inputs, targets in Points(8))
    assert right == 40
    assert told[-1]["step"] == told[-1]["steps"] == 25
    assert told[-1]["samples_per_second"] > 0 and told[-1]["loss"] < 0.7


def test_the_same_recipe_gives_the_same_weights() -> None:
    one, other = trained()[0].state_dict(), trained()[0].state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    "change",
    [{"epochs": 0}, {"batch_size": 0}, {"learning_rate": 0}, {"weight_decay": -1}, {"schedule": "x"}, {"colour": 1}],
)
def test_recipe_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Recipe.model_validate(GOOD | change)
