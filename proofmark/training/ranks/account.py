"""What a rank tells of its training: signs of life, how far it has come, losses, and the time of each part."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from proofmark.errors import StepError
from proofmark.training.ranks.clock import Clock, Part
from proofmark.training.ranks.model.strategy import Place, summed

if TYPE_CHECKING:
    from proofmark.record.events.log import EventLog
    from proofmark.training.heartbeat import HeartbeatWriter
    from proofmark.training.ranks.stepper import Stepper


PACE_NS, PACE_SHARE = 250_000_000, 100
"""After so much compute, and after so small a share of all of it, a rank notes how far that has come."""


class NonFiniteLoss(StepError):
    """The training diverged."""


@dataclass
class Position:
    """How far a training has come: `batch` is that of the epoch."""

    epoch: int = 0
    batch: int = 0
    steps: int = 0
    samples: int = 0


class Account:
    """What one rank tells.

    Args:
        last_alone: of steps whose losses are noted together, only the last one's is written.

    Attributes:
        log: of the rank.
        clock: of the parts of its training.
        place: among the ranks.
        stepper: all that a step changes.
        position: how far it has come.
    """

    def __init__(
        self,
        log: EventLog,
        heartbeat: HeartbeatWriter,
        clock: Clock,
        place: Place,
        stepper: Stepper,
        position: Position,
        last_alone: bool,
    ) -> None:
        self.log, self.clock, self.place, self.stepper, self.position = log, clock, place, stepper, position
        self._heartbeat = heartbeat
        self._losses: list[torch.Tensor] = []
        self._last_alone = last_alone
        self._pace_due = 0

    def alive(self, phase: str) -> None:
        """Give a sign of life."""
        self._heartbeat(self.position.steps, phase)

    def part(self, name: str) -> Part:
        """Begin one part of training, with a sign of life, and time it."""
        self.alive(name)
        return self.clock.part(name)

    def add(self, loss: torch.Tensor) -> None:
        """Keep the loss of a step. It is written down later, since reading it means waiting for the device."""
        self._losses.append(loss)

    def write_losses(self) -> None:
        """Note the losses since the last note; a loss of this rank that is no number ends the training.

        Raises:
            NonFiniteLoss: there is one.
        """
        if not self._losses:
            return
        own = torch.stack(self._losses).tolist()
        self._losses.clear()
        first = self.position.steps - len(own) + 1
        bad = next((step for step, loss in enumerate(own, first) if not math.isfinite(loss)), None)
        means = [loss / self.place.world for loss in summed(own, self.place)]
        losses = [loss if math.isfinite(loss) else None for loss in means]
        if self._last_alone:
            first, losses = self.position.steps, losses[-1:]
        schedule = {"learning_rate": self.stepper.learning_rate, "total_steps": self.stepper.total_steps}
        self.write_totals("steps", first=first, losses=losses, **schedule)
        if bad is not None:
            self.log.write("diverged", step=bad)
            raise NonFiniteLoss(f"the loss of step {bad} is not a finite number")

    def write_pace(self) -> None:
        """Note how far rank 0's compute has come, if that was not noted for long: losses are noted as seldom as a
        vendor's `log_freq` has it. Who keeps the last loss alone is held to no pace."""
        if self.place.rank == 0 and not self._last_alone and self.clock.parts["compute"] >= self._pace_due:
            self.write_totals("pace")

    def write_totals(self, kind: str, **fields: Any) -> None:
        """Every figure of the clock, as sums since training began."""
        at = self.position
        total = {"epoch": at.epoch, "step": at.steps, "samples": at.samples}
        communication = self.stepper.communication.totals()
        self.log.write(kind, **total, **self.clock.seconds(), communication=communication, **fields)
        computed = self.clock.parts["compute"]
        self._pace_due = computed + max(PACE_NS, computed // PACE_SHARE)
