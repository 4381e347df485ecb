"""A training's checkpoints: written when they are due, and gone on from."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.errors import StepError
from proofmark.training.ranks.model.strategy import Place, share_buffers, unwrapped
from proofmark.training.resuming import trained_by

if TYPE_CHECKING:
    from proofmark.record.events.log import EventLog
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.feeding.loading import Data
    from proofmark.training.ranks.account import Account, Position
    from proofmark.training.ranks.checkpoint import Checkpoints
    from proofmark.training.ranks.clock import Clock
    from proofmark.training.ranks.stepper import Stepper
    from proofmark.training.spec import TrainingSpec


class Saving:
    """Writes one rank's checkpoints; nothing to do where the configuration asks for none."""

    def __init__(
        self,
        config: EffectiveConfig,
        spec: TrainingSpec,
        data: Data,
        place: Place,
        log: EventLog,
        clock: Clock,
        stepper: Stepper,
        account: Account,
        position: Position,
    ) -> None:
        self._config, self._place, self._log, self._clock = config, place, log, clock
        self._stepper, self._account, self._position = stepper, account, position
        self._identity = _identity(config, spec, data, place)
        self._checkpoints: Checkpoints | None = None
        if config.checkpoint_steps:
            from proofmark.training.ranks.checkpoint import Checkpoints  # a second, for the library behind it

            self._checkpoints = Checkpoints(spec.checkpoint_directory, place.rank)

    def save_if_due(self, epoch_ended: bool) -> None:
        """Write one, where the last step was one of those after which it is due."""
        at, stepper = self._position, self._stepper
        if self._checkpoints is None or at.steps % self._config.checkpoint_steps:
            return
        with self._account.part("checkpoint"):
            self._account.write_losses()
            share_buffers(unwrapped(stepper.model), self._place)
            reached = {**asdict(at), "epoch": at.epoch + epoch_ended, "batch": 0 if epoch_ended else at.batch}
            progress = {**self._identity, **reached, **self._clock.state(), **stepper.state()}
            self._checkpoints.save(at.steps, stepper.model, stepper.optimizer, progress)
            self._log.write("checkpoint", step=at.steps)

    def wait(self) -> None:
        """Wait until the last one is written."""
        if self._checkpoints:
            self._account.alive("checkpoint")
            self._checkpoints.wait()

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            StepError: it is another run's, or damaged.
        """
        from proofmark.training.ranks.checkpoint import Checkpoints

        progress = Checkpoints.load(path, self._stepper.model, self._stepper.optimizer)
        here = {key: (progress.get(key), value) for key, value in self._identity.items()}
        wrong = [f"{key} is {its}, not {value}" for key, (its, value) in here.items() if its != value]
        if wrong:
            raise StepError(f"checkpoint {path.name} is of another run: {'; '.join(wrong)}")
        at = self._position
        at.epoch, at.batch, at.steps, at.samples = (progress[key] for key in ("epoch", "batch", "steps", "samples"))
        self._clock.resume(progress)
        self._stepper.resume(progress)
        self._log.write("resumed", checkpoint=path.name, step=at.steps, samples=at.samples)


def _identity(config: EffectiveConfig, spec: TrainingSpec, data: Data, place: Place) -> dict[str, Any]:
    """What a checkpoint must agree in with the run that goes on from it."""
    identities = {"train data": data.train.identity, "validation data": data.validation.identity}
    digests = {name: identity.sha256 for name, identity in identities.items()}
    return {"config": trained_by(config), "seed": spec.seed, "world": place.world, **digests}
