"""What a training case says about its model. The referee owns the loop and the clock."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import Field

from proofmark.case import Case
from proofmark.rules.case_file import Parameters

if TYPE_CHECKING:
    import torch

    from proofmark.case import Batch
    from proofmark.errors import StepError
    from proofmark.record.parts import Identity
    from proofmark.rules.config import EffectiveConfig


class TrainingParameters(Parameters):
    """The parameters of a training case."""

    better: Literal["higher", "lower"]
    schedule: Literal["one_cycle", "linear", "step", "constant"]
    warmup: float = Field(0.0, ge=0, lt=1, description="share of the steps in which the rate rises; not of one_cycle")
    step_share: float = Field(
        1.0, gt=0, le=1, description="share of the steps after each of which `step` goes on with a tenth of the rate"
    )
    max_epoch: int = Field(ge=1)
    eval_interval_samples: int = Field(ge=0, description="samples between two evaluations; 0 is each epoch's end")
    max_samples_termination: int | None = Field(None, ge=1)
    initial_weights: bool | Literal["required"] = Field(
        False, description="whether training may, or must, start from --weights, not only from fresh ones"
    )
    references: dict[Annotated[str, Field(pattern=r"^[1-9][0-9]*$")], list[int]] = Field(
        default_factory=dict, description="samples to target of reference runs, by global batch"
    )


def rate_share(config: EffectiveConfig, steps: int, step: int) -> float:
    """The share of the learning rate at a step, counted from 0 of `steps`."""
    rising: int = round(config.get("warmup", 0.0) * steps)
    if step < rising:
        return (step + 1) / (rising + 1)
    if config.schedule == "linear":
        return max(0.0, (steps - step) / (steps - rising))
    if config.schedule == "step":
        return 10.0 ** -int(step / (config.step_share * steps))
    return 1.0


class TrainingData(Protocol):
    """A dataset that answers a list of indices with one collated batch, or with the StepError to raise.

    A batch is `(inputs, targets)`: the list of the model's positional inputs, CPU tensors whose first dimension is
    the batch, and what `loss` and `evaluator` compare with.

    The referee sets `epoch` on the training data before it reads that epoch. What the data draws at random must follow
    from its seed, `epoch` and the index alone: a resumed run, or one at another scale, then sees the same samples.
    """

    epoch: int

    @property
    def identity(self) -> Identity:
        """Name, SHA-256 of the content, number of items."""

    def __len__(self) -> int: ...

    def __getitems__(self, indices: list[int]) -> Batch | StepError: ...


class TrainingCase(Case):
    """A model, its data, its loss and its metric, to train."""

    parameters_type = TrainingParameters

    packages = ("torch", "transformers", "numpy", "pytest", "pytest-benchmark")

    @abstractmethod
    def build_dataset(self, config: EffectiveConfig, split: str) -> TrainingData:
        """The data of a split: 'train' or 'validation'.

        Called once for all ranks of a node, in a process that is forked for each of them, and again by the referee's
        processes outside the ranks: each has the whole data set. A file that is opened here has one place for all of
        them: samples are read from files that are opened then.

        Raises:
            StepError: the data directory is not what the case expects.
        """

    def create_optimizer(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        """AdamW by `learning_rate` and `weight_decay`."""
        import torch

        return torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)

    def create_scheduler(self, optimizer: torch.optim.Optimizer, config: EffectiveConfig, steps: int) -> Any:
        """What the parameter `schedule` names: one_cycle, linear (decay to nothing), step or constant."""
        from torch.optim import lr_scheduler

        if config.schedule == "one_cycle":
            return lr_scheduler.OneCycleLR(optimizer, config.learning_rate, total_steps=steps)
        return lr_scheduler.LambdaLR(optimizer, partial(rate_share, config, steps))

    def tokens(self, inputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor | None:
        """How many tokens each sample of a batch has, padding left out, (batch,); None where samples are no text."""
        return None

    def train_step(self, model: torch.nn.Module, inputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """One forward pass to the mean loss over a batch."""
        output = model(*inputs)
        return self.loss(list(output) if isinstance(output, tuple) else [output], targets)
