"""The steps of training that a vendor may do its own way."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from proofmark.rules.config import EffectiveConfig

if TYPE_CHECKING:
    import torch


class TrainingAdapter:
    """The steps of training that a vendor may do in its own way. None is required; what is adapted is in the record."""

    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        """The fresh model with parts replaced by the vendor's own.

        Its state dict keeps the case's names (behind wrappers such as `module.`; `_extra_state` may be added), shapes,
        values, and dtypes, or at precision fp16 and bf16 that one; all stays trainable that was; and in eval mode it
        computes what the case's model does. The referee looks, and evaluates the weights in the case's own model.
        An audit makes steps again, each rank's with its own samples: statistics over those of all ranks
        (SyncBatchNorm) give other gradients, which it refuses.
        """
        return model

    def create_optimizer(
        self, case: TrainedCase, model: torch.nn.Module, config: EffectiveConfig
    ) -> torch.optim.Optimizer:
        """The case's optimizer, or one that does the same.

        Some of its updates are made again by the case's. In later steps they can be where its `state` has of each
        parameter what the case's has, by the same keys and in the same shapes; it is read between steps.
        """
        return case.create_optimizer(model, config)

    def autocast(self, config: EffectiveConfig, device: torch.device) -> AbstractContextManager[Any]:
        """The context of a forward pass: torch's autocast at precision fp16 and bf16."""
        import torch

        dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(config.precision)
        return torch.autocast(device.type, dtype=dtype) if dtype else nullcontext()

    def train_step(
        self, case: TrainedCase, model: torch.nn.Module, inputs: list[torch.Tensor], targets: torch.Tensor
    ) -> torch.Tensor:
        """One forward pass to the mean loss over a batch, by default the case's."""
        return case.train_step(model, inputs, targets)

    def backward(self, loss: torch.Tensor) -> None:
        """One backward pass."""
        loss.backward()  # type: ignore[no-untyped-call]


class TrainedCase(Protocol):
    """What an adapter may ask of the case that is trained."""

    def create_optimizer(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        """Its optimizer, over all that is trained of the model."""

    def train_step(self, model: torch.nn.Module, inputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """One forward pass to the mean loss over a batch."""

    def loss(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """The mean loss, from what the model answered."""


_OWN = {
    step: vars(TrainingAdapter)[step]
    for step in ("convert_model", "create_optimizer", "autocast", "train_step", "backward")
}
"""The referee's own way of each step, as it was before any vendor's code ran."""

ADAPTABLE = tuple(_OWN)


def adapted_steps(adapter: TrainingAdapter) -> list[str]:
    """Names of the steps of training that a vendor does otherwise, in whatever way it has put its own there."""
    return [step for step in ADAPTABLE if getattr(getattr(adapter, step, None), "__func__", None) is not _OWN[step]]
