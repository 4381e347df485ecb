"""A trial begins from what its parent left: the same function, whatever hyper-parameters are in its network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from proofmark.automl.case import AutoMLCase
from proofmark.automl.morphism.grow import grown
from proofmark.automl.morphism.operations import Deeper, Wider
from proofmark.automl.network.graph import Graph
from proofmark.automl.network.module import GraphNetwork, fresh_weights
from proofmark.automl.network.seeds import small_network
from proofmark.automl.search.networks import settled
from proofmark.automl.trial.made_case import TrialCase
from proofmark.automl.trial.spec import MOMENTUM, WEIGHTS, Parent, TrialSpec
from proofmark.automl.trial.tensors import read_weights, save
from proofmark.errors import ConfigurationError, StepError

OPERATIONS = [Deeper(after="stem_relu"), Wider(conv="s1b1_1_conv")]
HYPERPARAMETERS = {"kernel_size": 5, "batch_size": 8, "dropout": 0.1}


class Case(AutoMLCase):
    def build_dataset(self, config: Any, split: str) -> Any:
        return split

    def seed_network(self, config: Any) -> Graph:
        return small_network(size=8, width=4)


def trial(folder: Path, **changes: Any) -> TrialSpec:
    seed = small_network(size=8, width=4)
    weights = fresh_weights(seed, 0)
    save(weights, folder / WEIGHTS)
    save({name: torch.ones_like(tensor) for name, tensor in weights.items() if "conv" in name}, folder / MOMENTUM)
    plain = [operation.model_dump(mode="json") for operation in OPERATIONS]
    fields: dict[str, Any] = {
        "graph": settled(grown(seed, *OPERATIONS), HYPERPARAMETERS).model_dump(mode="json"),
        "parent": Parent(seed.model_dump(mode="json"), plain, str(folder)),
        "hyperparameters": HYPERPARAMETERS,
    }
    common: tuple[Any, ...] = (("", ""), "acme", "", {}, str(folder), ())
    return TrialSpec(*common, **{**fields, "trial": 1, "epochs": 1, "patience": None, "seed": 1, **changes})


def test_a_child_computes_what_its_parent_does(tmp_path: Path) -> None:
    spec = trial(tmp_path)
    case = TrialCase(Case(), spec)
    config: Any = None
    images = torch.randn(4, 3, 8, 8)
    seed = small_network(size=8, width=4)
    parent = GraphNetwork(seed, fresh_weights(seed, 0)).eval()
    child = case.create_model(config).eval()
    torch.testing.assert_close(child(images), parent(images), rtol=1e-4, atol=1e-5)
    assert isinstance(child, GraphNetwork) and child.graph.by_name["s1b1_1_conv"].model_dump()["kernel"] == 5
    kept = child.by_name()
    assert all(tensor.shape == kept[name].shape for name, tensor in case.momentum.items())
    larger = case.momentum["s1b1_1_conv.weight"]
    assert larger.shape[-1] == 5 and not larger[..., 0, :].any(), "zeros around what it was"
    assert float(larger.sum()) == 4 * 4 * 3 * 3


def test_a_child_begins_in_full_precision_whatever_its_parent_left(tmp_path: Path) -> None:
    """As of a vendor that trains in half precision, and batch norms in full: its way makes the same of a child."""
    spec = trial(tmp_path)
    mixed = {name: each.half() if "conv" in name else each for name, each in read_weights(tmp_path / WEIGHTS).items()}
    save(mixed, tmp_path / WEIGHTS)
    config: Any = None
    child = TrialCase(Case(), spec).create_model(config).state_dict()
    assert {each.dtype for each in child.values() if each.is_floating_point()} == {torch.float32}


def test_a_trial_is_judged_on_its_own_split(tmp_path: Path) -> None:
    config: Any = None
    case = TrialCase(Case(), trial(tmp_path, split="held_out"))
    assert (case.build_dataset(config, "train"), case.build_dataset(config, "validation")) == ("train", "held_out")


def test_weights_that_are_not_there_or_damaged_are_a_line(tmp_path: Path) -> None:
    spec = trial(tmp_path)
    (tmp_path / WEIGHTS).write_bytes(b"no tensors")
    with pytest.raises(StepError, match="cannot be read"):
        TrialCase(Case(), spec)
    (tmp_path / WEIGHTS).unlink()
    with pytest.raises(StepError, match="cannot be read"):
        TrialCase(Case(), spec)


def test_an_illegal_network_is_told_with_every_problem(tmp_path: Path) -> None:
    graph = small_network(size=8, width=4).model_dump(mode="json")
    graph["nodes"][0]["kernel"] = 4
    graph["nodes"][3]["inputs"] = ["nowhere"]
    with pytest.raises(ConfigurationError, match=r"(?s)kernel of 4.*nowhere"):
        TrialCase(Case(), trial(tmp_path, graph=graph))
