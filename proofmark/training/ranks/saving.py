"""A training's checkpoints: written when they are due, and gone on from."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.errors import StepError
from proofmark.training.ranks.model.strategy import share_buffers, unwrapped
from proofmark.training.resuming import trained_by

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.feeding.loading import Data
    from proofmark.training.ranks.account import Account
    from proofmark.training.ranks.checkpoint import Checkpoints
    from proofmark.training.spec import TrainingSpec


class Saving:
    """Writes one rank's checkpoints; nothing to do where the configuration asks for none."""

    def __init__(self, config: EffectiveConfig, spec: TrainingSpec, data: Data, account: Account) -> None:
        self._config, self._account = config, account
        self._identity = _identity(config, spec, data, account.place.world)
        self._apart = dict[str, int]()
        self._checkpoints: Checkpoints | None = None
        if config.checkpoint_steps:
            from proofmark.training.ranks.checkpoint import Checkpoints  # a second, for the library behind it

            self._checkpoints = Checkpoints(spec.checkpoint_directory, account.place)

    def save_if_due(self, epoch_ended: bool) -> None:
        """Write one, where the last step was one of those after which it is due."""
        account, at, stepper = self._account, self._account.position, self._account.stepper
        if self._checkpoints is None or at.steps % self._config.checkpoint_steps:
            return
        with account.part("checkpoint"):
            account.write_losses()
            share_buffers(unwrapped(stepper.model), account.place)
            reached = {**asdict(at), "epoch": at.epoch + epoch_ended, "batch": 0 if epoch_ended else at.batch}
            progress = {**self._identity, **reached, **account.clock.state(), **stepper.state()}
            progress["parts_of_ranks"] = self._checkpoints.gathered(self._own_parts())
            self._checkpoints.save(at.steps, stepper.model, stepper.optimizer, progress)
            account.log.write("checkpoint", step=at.steps)

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

        account, at, stepper = self._account, self._account.position, self._account.stepper
        progress = Checkpoints.load(path, stepper.model, stepper.optimizer, account.place.device)
        here = {key: (progress.get(key), value) for key, value in self._identity.items()}
        wrong = [f"{key} is {its}, not {value}" for key, (its, value) in here.items() if its != value]
        if wrong:
            raise StepError(f"checkpoint {path.name} is of another run: {'; '.join(wrong)}")
        at.epoch, at.batch, at.steps, at.samples = (progress[key] for key in ("epoch", "batch", "steps", "samples"))
        account.clock.resume(progress)
        if ranks := progress.get("parts_of_ranks"):  # an older checkpoint has rank 0's alone
            own = ranks[account.place.rank]
            self._apart = {part: own[part] - ns for part, ns in progress["parts_ns"].items()}
        stepper.resume(progress)
        apart = {"apart": {part: ns / 1e9 for part, ns in self._apart.items()}} if self._apart else {}
        account.log.write("resumed", checkpoint=path.name, step=at.steps, samples=at.samples, **apart)

    def _own_parts(self) -> dict[str, int]:
        """This rank's, in nanoseconds: its clock went on from rank 0's, which are the run's."""
        return {part: ns + self._apart.get(part, 0) for part, ns in self._account.clock.parts.items()}


def _identity(config: EffectiveConfig, spec: TrainingSpec, data: Data, world: int) -> dict[str, Any]:
    """What a checkpoint must agree in with the run that goes on from it."""
    identities = {"train data": data.train.identity, "validation data": data.validation.identity}
    digests = {name: identity.sha256 for name, identity in identities.items()}
    return {"config": trained_by(config), "seed": spec.seed, "world": world, **digests}
