"""Training of embedded weights by a recipe, by the one trainer: deterministic, and told as it goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file

from proofmark.errors import StepError
from proofmark.inference.recipe import Recipe
from proofmark.inference.steps.embedded import train
from proofmark.metric import Metric
from proofmark.rules.config import EffectiveConfig
from tests.unit.automl.net import Breaks, Convolves, Net, Points

GOOD = {"epochs": 5, "batch_size": 8, "learning_rate": 0.1}


def trained(directory: Path, case: Net | None = None, **training: Any) -> tuple[torch.nn.Module, list[dict[str, Any]]]:
    steps: list[dict[str, Any]] = []
    parameters = {"training": GOOD | training, "seed": 0}
    config = EffectiveConfig("inference", "net", "embedded", "acme", parameters, {"batch_size": 8, "num_workers": 0})
    directory.mkdir()
    recipe = Recipe.model_validate(GOOD | training)
    weights = train(case or Net(), config, recipe, directory, lambda **figures: steps.append(figures))
    model = (case or Net()).create_model(config)
    model.load_state_dict(load_file(weights))
    return model, steps


def test_it_learns_and_gives_the_same_weights_again(tmp_path: Path) -> None:
    model, steps = trained(tmp_path / "one")
    points, targets = Points().tensors
    assert Net().evaluator([model(points)], targets)[0] == 40
    assert steps[-1]["step"] == steps[-1]["steps"] == 25
    assert steps[-1]["samples_per_second"] > 0 and steps[-1]["loss"] < 0.7
    again = trained(tmp_path / "other")[0].state_dict()
    assert all(torch.equal(tensor, again[name]) for name, tensor in model.state_dict().items())


def test_images_in_another_memory_layout(tmp_path: Path) -> None:
    model, steps = trained(tmp_path / "one", Convolves(), channels_last=True)
    assert model[1].weight.is_contiguous() and steps[-1]["loss"] < 0.7  # type: ignore[index, union-attr]


def test_a_training_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no loss today"):
        trained(tmp_path / "one", Breaks())


def test_what_is_no_batch_is_told_of_the_method_that_the_case_has(tmp_path: Path) -> None:
    class Named(Net):
        def build_dataloader(self, config: Any, split: str = "validation") -> Any:
            return torch.utils.data.DataLoader(Points(), 8, collate_fn=lambda items: {"points": items})

    with pytest.raises(StepError, match="^build_dataloader: a batch is a dict; expected"):
        trained(tmp_path / "one", Named())


def test_a_metric_sees_by_which_values_the_case_is_judged(tmp_path: Path) -> None:
    """Training sees none of it, a metric that is made from the YAML's names does."""

    class Named(Net):
        def metric(self, config: Any) -> Metric:
            assert list(config.metrics) == ["top1"] and config.target == 0.9
            return super().metric(config)

        def create_model(self, config: Any) -> torch.nn.Module:
            assert "metrics" not in config.parameters
            return super().create_model(config)

    parameters = {"training": GOOD, "seed": 0, "metric": "top1", "target": 0.9, "metrics": {"top1": {"target": 0.9}}}
    config = EffectiveConfig("inference", "net", "embedded", "acme", parameters, {"batch_size": 8, "num_workers": 0})
    assert train(Named(), config, Recipe.model_validate(GOOD), tmp_path, lambda **_: None).is_file()


@pytest.mark.parametrize(
    "change",
    [{"epochs": 0}, {"batch_size": 0}, {"learning_rate": 0}, {"weight_decay": -1}, {"schedule": "x"}, {"colour": 1}],
)
def test_recipe_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Recipe.model_validate(GOOD | change)
