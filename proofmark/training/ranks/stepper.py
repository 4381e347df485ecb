"""One step of training: a global batch through the model, forward and backward, and the optimizer's step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from typing import TYPE_CHECKING, Any

import torch

from proofmark.errors import StepError
from proofmark.literal import some
from proofmark.measuring.rehearsal import checked_loss
from proofmark.training.case import TrainingCase
from proofmark.training.ranks.communication import CommunicationMeter
from proofmark.training.ranks.model.own import without_gradient
from proofmark.training.ranks.model.strategy import Place, awaited, exchange, on_device, prepare, summed

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.feeding.batches import Share
    from proofmark.training.ranks.recording import Recorder
    from proofmark.vendor.adapter import TrainingAdapter


class Stepper:
    """A model that is ready to be trained, and all that a step changes.

    Attributes:
        model: on its device, converted by the vendor, replicated or sharded.
        total_steps: of the whole training, for its schedule.
    """

    def __init__(
        self,
        case: TrainingCase,
        config: EffectiveConfig,
        place: Place,
        adapter: TrainingAdapter,
        fresh: torch.nn.Module,
        total_steps: int,
    ) -> None:
        self._case, self._config, self._place, self._adapter = case, config, place, adapter
        self.model = prepare(adapter.convert_model(fresh.train(), config), config, place).train()
        self.communication, self._exchange = CommunicationMeter(self.model, place), exchange(self.model)
        self.optimizer = adapter.create_optimizer(case, self.model, config)
        self.total_steps, self._begun = total_steps, False
        self._scheduler = case.create_scheduler(self.optimizer, config, total_steps)
        self._scaler = torch.amp.GradScaler(place.device.type, enabled=config.precision == "fp16")

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        return float(self._scheduler.get_last_lr()[0])

    def autocast(self) -> AbstractContextManager[Any]:
        """The context of a forward pass, the vendor's."""
        return self._adapter.autocast(self._config, self._place.device)

    def step(
        self,
        shares: Sequence[Share],
        batches: Sequence[Batch],
        alive: Callable[[], None],
        recorder: Recorder | None = None,
    ) -> torch.Tensor:
        """One optimizer step over a global batch; this rank's part of its mean loss, times the world size.

        Args:
            shares: of this rank, one for each micro-batch.
            batches: theirs.
            alive: called before each micro-batch but the first.
            recorder: is shown the gradients.

        Raises:
            StepError: the first one has no loss to train by, or leaves parameters without a gradient, and another one
                can't be taken then.
        """
        losses = []
        for number, (batch, weight) in enumerate(zip(batches, self._weights(shares, batches), strict=True), 1):
            if number > 1:
                alive()
            losses.append(self._micro_step(batch, weight, last=number == len(shares)))
        if not self._begun:
            self._see_all_gradients()
        if recorder is not None:
            recorder.hold(self.model, self._scaler.get_scale())
        self._scaler.step(self.optimizer)
        self._scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self._scheduler.step()
        return reduce(torch.add, losses)

    def state(self) -> dict[str, Any]:
        """What a checkpoint must have beside weights and the optimizer's state."""
        return {"scheduler": self._scheduler.state_dict(), "scaler": self._scaler.state_dict()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        self._scheduler.load_state_dict(state["scheduler"])
        self._scaler.load_state_dict(state["scaler"])

    def _weights(self, shares: Sequence[Share], batches: Sequence[Batch]) -> list[float]:
        """What turns each mean loss of this rank into its part of the mean over the global batch.

        Gradients are averaged over ranks and summed over micro-batches: weights add up to the world size.
        """
        if len(shares) == self._place.world == 1:
            return [1.0]
        counts = [
            self._case.loss_weight(targets) * share.samples / len(share.indices)
            for share, (_, targets) in zip(shares, batches, strict=True)
        ]
        with self.communication.exchange():
            (total,) = summed([sum(counts)], self._place)
        return [count * self._place.world / (total or math.nan) for count in counts]

    def _see_all_gradients(self) -> None:
        """See that the first step's exchange has come to its end: else the next one fails, in words of torch's."""
        self._begun = True
        if lacking := awaited(self.model, without_gradient(self.model)):
            what = "get no gradient, and with several processes all must"
            how = "leave them out, or set their requires_grad to False"
            raise StepError(f"create_model: {some(lacking, 4)} {what}; {how}")

    def _micro_step(self, batch: Batch, weight: float, last: bool) -> torch.Tensor:
        inputs, targets = on_device(batch, self._config, self._place)
        with self.communication.micro_step(last), self._exchange(last):
            with self.autocast():
                loss = self._adapter.train_step(self._case, self.model, inputs, targets)
            if not self._begun:
                own = type(self._case).train_step is not TrainingCase.train_step
                checked_loss(loss, "train_step" if own else "loss")
            if weight != 1.0:
                loss = loss * weight if weight else loss.nan_to_num() * 0.0  # a mean over nothing is no number
            self._adapter.backward(self._scaler.scale(loss))
        return loss.detach()
