"""What a training is for: how long it may go on, what is looked at on its way, and what ends it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from proofmark.measuring.precision import count_flops
from proofmark.measuring.rehearsal import declared_and_counted, taking
from proofmark.training.ranks.model.rehearsal import MAKER, rehearse_evaluation

if TYPE_CHECKING:
    import torch

    from proofmark.training.ranks.model.evaluation import Evaluated
    from proofmark.training.ranks.trainer import Trainer


class Goal(ABC):
    """A trainer calls it at its moments; whatever it decides must be the same on all ranks.

    Attributes:
        vendors_way: whether the vendor's own steps are used, where it has any.
        leaves_weights: whether the last weights are what it came to.
        most_notes: of losses, each of a last step's alone; None notes those of all steps, as often as is configured.
    """

    vendors_way = True
    leaves_weights = True
    most_notes: int | None = None

    def epochs(self, training: Trainer) -> int:
        """How many it lasts at most; none is an evaluation alone. The first one begins now."""
        return int(training.config.max_epoch)

    def rehearse(self, training: Trainer, model: torch.nn.Module) -> None:  # noqa: B027
        """See on every rank what the case's own methods make of a few samples. The model is fresh.

        Raises:
            StepError: one of them is wrong.
        """

    @abstractmethod
    def count(self, training: Trainer, model: torch.nn.Module) -> None:
        """Write down the operations of the model, which is fresh, on rank 0.

        Raises:
            StepError: they are not those that the case declares.
        """

    def ready(self, training: Trainer) -> None:  # noqa: B027 (most have nothing to do then)
        """All is made, and nothing was computed."""

    def evaluated(self, training: Trainer, found: Evaluated) -> None:  # noqa: B027
        """An evaluation has come to its values: the one before the first step, or one after some."""

    @abstractmethod
    def is_over(self, training: Trainer, found: Evaluated) -> bool:
        """Whether this ends it: after an evaluation that came after some steps."""

    def ended(self, training: Trainer) -> None:  # noqa: B027
        """Nothing more is computed."""


class Target(Goal):
    """To reach the case's target, or to train for as long as the limits allow."""

    def __init__(self, until_converged: bool) -> None:
        self._until_converged = until_converged

    def rehearse(self, training: Trainer, model: torch.nn.Module) -> None:
        """An evaluation of two samples."""
        rehearse_evaluation(training.case, training.config, model, training.data.validation, training.place)

    def count(self, training: Trainer, model: torch.nn.Module) -> None:
        """Count one sample's step: three forward passes' worth, the backward pass counted as two."""
        inputs, _ = training.data.train.sample()
        with taking(inputs, MAKER, f"rank{training.place.rank}.log"):
            counted = 3.0 * count_flops(model.eval(), inputs)
        training.log.write("flops", counted=counted)
        if "flops" in training.config.parameters:  # weights for inference are trained without
            declared_and_counted(training.case, training.config, counted)

    def is_over(self, training: Trainer, found: Evaluated) -> bool:
        """Whether every value of the metric that has a target is there, in the case's own model too where the vendor
        trains its own way: that one decides."""
        if not (self._until_converged and found.reached):
            return False
        if not training.adapted:
            return True
        own = training.confirmed(found)
        return not training.honest or (own is not None and own.reached)
