"""What a case of a search says: its data in three parts, its seed network, its loss and its metric."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from proofmark.automl.network.layers import LARGEST_KERNEL
from proofmark.case import Case
from proofmark.rules.case_file import Parameters

if TYPE_CHECKING:
    import torch

    from proofmark.automl.network.graph import Graph
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingData


LEAST_MARK = 1e-3
"""Seconds between two points of a curve, at least."""


class AutoMLParameters(Parameters):
    """The parameters of a search."""

    better: Literal["higher"] = "higher"
    schedule: Literal["one_cycle", "linear", "constant"]
    rankable: bool = Field(description="whether its score may be set beside others'")
    min_seconds: float = Field(ge=0, description="that a search lasts at least to be valid")
    mark_seconds: float = Field(ge=LEAST_MARK, description="between two points of the curves")
    first_mark: int = Field(2, ge=1, description="the first of them, in units of mark_seconds")
    study_from_round: int = Field(3, ge=0, description="the first round, from 0, with hyper-parameters of the study")
    hyperparameters: dict[str, list[float]] = Field(description="what the study may choose from")
    kernel_size: int = Field(description="before the study chooses")
    dropout: float = Field(description="before the study chooses")
    image_size: int = Field(ge=1, description="height and width of an image")
    channels: int = Field(ge=1, description="of an image")
    classes: int = Field(ge=2)
    growth: float = Field(gt=1, description="how many times the seed network's operations a child's may be")
    seed_network: dict[str, Any] = Field(description="which one the search begins with")

    @model_validator(mode="before")
    @classmethod
    def _has_one_value(cls, values: Any) -> Any:
        """Before anything else is said of several: the suite's common base has `metric`."""
        if isinstance(values, dict) and values.get("metrics") is not None:
            raise ValueError("`metrics`: a search is scored by one value; give it as `metric` and `target`")
        return values

    @model_validator(mode="after")
    def _are_ranges(self) -> AutoMLParameters:
        expected = {"kernel_size", "batch_size", "dropout"}
        if self.hyperparameters.keys() != expected:
            raise ValueError(f"hyperparameters: expected {', '.join(sorted(expected))}")
        for name in ("batch_size", "dropout"):
            bounds = self.hyperparameters[name]
            if len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1]:
                raise ValueError(f"hyperparameters: {name}: expected two bounds in order, found {bounds}")
        (least, most), kernels = self.hyperparameters["dropout"], self.hyperparameters["kernel_size"]
        if any(kernel % 2 != 1 or not 1 <= kernel <= LARGEST_KERNEL for kernel in kernels):
            raise ValueError(f"hyperparameters: kernel_size: expected odd numbers to {LARGEST_KERNEL}, found {kernels}")
        if most >= 1 or self.hyperparameters["batch_size"][0] < 1:
            raise ValueError("hyperparameters: expected dropout below 1 and batch_size from 1")
        if self.kernel_size not in self.hyperparameters["kernel_size"] or not least <= self.dropout <= most:
            raise ValueError("hyperparameters: expected kernel_size and dropout, as they are at first, among theirs")
        return self


class AutoMLCase(Case):
    """Networks that are made while it runs, and data to train and judge them with."""

    parameters_type = AutoMLParameters

    packages = ("torch", "optuna", "scikit-learn", "safetensors", "numpy", "pytest", "pytest-benchmark")

    @abstractmethod
    def build_dataset(self, config: EffectiveConfig, split: str) -> TrainingData:
        """The data of a split, no item of which is in another one.

        'train' is trained on, by 'search' trials are chosen, and on 'held_out' the best one is judged in the end.

        Raises:
            StepError: the data directory is not what the case expects.
        """

    @abstractmethod
    def seed_network(self, config: EffectiveConfig) -> Graph:
        """The network that the search begins with."""

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """The seed network, fresh."""
        from proofmark.automl.network.module import GraphNetwork, fresh_weights

        graph = self.seed_network(config)
        return GraphNetwork(graph, fresh_weights(graph, config.seed))

    def create_optimizer(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        """SGD by `learning_rate`, `momentum` and `weight_decay`."""
        from torch.optim import SGD

        return SGD(
            model.parameters(), lr=config.learning_rate, momentum=config.momentum, weight_decay=config.weight_decay
        )

    def loss(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """Cross entropy with label smoothing 0.1, as the original has it."""
        import torch.nn.functional as functional

        return functional.cross_entropy(outputs[0], targets, label_smoothing=0.1)

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """Images whose highest logit is their class's, and images."""
        return float((outputs[0].argmax(-1) == targets).sum()), float(len(targets))
