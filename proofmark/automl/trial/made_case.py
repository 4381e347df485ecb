"""A trial as a case of training: one network of a search's, with what it inherits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from pydantic import TypeAdapter

from proofmark.automl.case import AutoMLCase
from proofmark.automl.morphism.inherit import inherit, resized
from proofmark.automl.morphism.operations import Operation
from proofmark.automl.network.graph import Graph, parse_graph
from proofmark.automl.network.module import GraphNetwork, Weights, fresh_weights
from proofmark.automl.trial.spec import MOMENTUM, WEIGHTS
from proofmark.automl.trial.tensors import read_weights
from proofmark.training.case import TrainingCase

if TYPE_CHECKING:
    from proofmark.automl.trial.spec import TrialSpec
    from proofmark.metric import Metric
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingData


class TrialCase(TrainingCase):
    """What `TrainingCase` asks, of a case that searches."""

    def __init__(self, case: AutoMLCase, spec: TrialSpec) -> None:
        """Read the network, and the weights that it begins with.

        Raises:
            ConfigurationError: a network is none.
            StepError: the parent's weights are not there or don't fit it.
        """
        self._case, self._split = case, spec.split
        self._graph = parse_graph(spec.graph, f"trial {spec.trial}")
        self._weights, self.momentum = _begun(spec, self._graph)

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """The trial's network."""
        return GraphNetwork(self._graph, self._weights)

    def build_dataset(self, config: EffectiveConfig, split: str) -> TrainingData:
        """What is evaluated on is the trial's split."""
        return self._case.build_dataset(config, split if split == "train" else self._split)

    def create_optimizer(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        """The case's."""
        return self._case.create_optimizer(model, config)

    def loss(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """The case's."""
        return self._case.loss(outputs, targets)

    def metric(self, config: EffectiveConfig) -> Metric:
        """The case's."""
        return self._case.metric(config)


def _begun(spec: TrialSpec, graph: Graph) -> tuple[Weights, Weights]:
    """Weights to begin with, fresh ones or what becomes of the parent's, and its momentum.

    Raises:
        StepError: they are not there, or don't come to this network.
    """
    if spec.parent is None:
        return fresh_weights(graph, spec.seed), {}
    folder = Path(spec.parent.folder)
    left = read_weights(folder / WEIGHTS)  # of several types perhaps, after a vendor's way: the case's model has one
    weights = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in left.items()}
    momentum = read_weights(folder / MOMENTUM) if (folder / MOMENTUM).exists() else {}
    parent = parse_graph(spec.parent.graph, f"the parent of trial {spec.trial}")
    operations = TypeAdapter(list[Operation]).validate_python(spec.parent.operations)
    child = inherit(parent, operations, weights, momentum, seed=spec.seed)
    return resized(graph, child.weights), resized(graph, child.momentum)
