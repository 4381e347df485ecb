"""What an inference case says about its model. The referee does the rest."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from proofmark.case import Case, Loader
from proofmark.inference.recipe import Recipe
from proofmark.rules.case_file import Parameters

if TYPE_CHECKING:
    import torch

    from proofmark.rules.config import EffectiveConfig


class InferenceParameters(Parameters):
    """The parameters of an inference case."""

    warmup: int = Field(ge=1, description="untimed batches before the first round")
    training: Recipe | None = Field(
        None, exclude_if=lambda recipe: recipe is None, description="how the suite trains the weights"
    )


class InferenceCase(Case):
    """A model, its data and its metric, to run."""

    parameters_type = InferenceParameters

    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers", "onnx", "numpy", "pytest", "pytest-benchmark")

    input_names: tuple[str, ...] = ("input",)
    """Names of the model's inputs in the exported ONNX file."""

    output_names: tuple[str, ...] = ("logits",)
    """Names of its outputs."""

    def shortfall(
        self, model: torch.nn.Module, inputs: list[torch.Tensor], outputs: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        """How near to being chosen was what an answer names, by `model`, which is the case's own in float32.

        An answer of whole numbers says what has the highest score, and not by how little: without this a name is known
        to differ, and no more. Only the referee calls it, never an engine.

        Args:
            inputs: the model's.
            outputs: an answer to them, whoever gave it; a name in it may be no name at all.

        Returns:
            of each output of whole numbers, in its shape: by how much the score of what it names is less than the
            highest, in standard deviations of the scores that it was chosen among; infinite for what is no name.
            Nothing, where the case has no such outputs, or cannot say: then the names are counted that differ.
        """
        return []

    @abstractmethod
    def build_dataloader(self, config: EffectiveConfig, split: str = "validation") -> Loader:
        """The data. `split` is 'train' only to train the embedded profile's weights.

        Raises:
            StepError: the data directory is not what the case expects.
        """
