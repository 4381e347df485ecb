"""Steps that a rank records for the audit: weights before and after, the gradients between, the optimizer's state."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from proofmark.training.drawn_steps import RUN, DrawnSteps
from proofmark.training.ranks.left import Alive, save_whole
from proofmark.training.ranks.model.gathering import from_rank_0, gathered
from proofmark.training.ranks.model.own import named_gradients, named_state, named_weights
from proofmark.training.ranks.model.strategy import Place, unwrapped
from proofmark.training.spec import AFTER, BEFORE, GRADIENTS, RANDOM, RANDOM_OF, STATE, STEP, WHICH

if TYPE_CHECKING:
    from proofmark.training.ranks.account import Position


class Recorder:
    """Of one rank; every rank calls every method."""

    def __init__(self, directory: Path, place: Place, chances: Iterable[float], alive: Alive = lambda: None) -> None:
        """`chances` are as `drawn_steps.draw` gives them; those of rank 0 count. `alive` is called before each tensor
        that is copied, and before they are written: a large model takes long."""
        self._directory, self._place, self._alive = directory, place, alive
        self._steps = DrawnSteps(chances, lambda number: from_rank_0([number], place)[0])
        self._gradients: dict[str, torch.Tensor] = {}
        self._folder = directory
        self._drawn: list[Path] = []

    def due(self) -> bool:
        """Whether the next step is to be recorded; rank 0 decides for all."""
        return self._steps.due()

    def begin(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, at: Position) -> None:
        """Before the step after `at`: its weights; and before the first of a run, which is not the training's, what the
        optimizer keeps.

        Raises:
            OSError: no space, no permission.
        """
        self._folder = self._directory / STEP.format(at.steps + 1)
        if self._place.rank == 0:
            self._drawn += [] if self._steps.first else [self._folder]
            self._folder.mkdir(parents=True, exist_ok=True)
            which = {"step": at.steps + 1, "epoch": at.epoch, "batch": at.batch}
            (self._folder / WHICH).write_text(json.dumps(which), encoding="utf-8")
        self._save(named_weights(unwrapped(model)), BEFORE)
        if self._steps.begins and at.steps:
            self._save(named_state(unwrapped(model), optimizer), STATE)
        self._save(self._random_states(), RANDOM)  # last: ranks wait here for the one that writes, and say so

    def hold(self, model: torch.nn.Module, scale: float = 1.0) -> None:
        """Keep the gradients for `end`; called between a step's backward pass and the optimizer's step.

        They are `scale` times as long as the loss has them, and stay so: an optimizer may be one that divides itself,
        and a step that is recorded is taken as any other.
        """
        gradients = named_gradients(unwrapped(model))
        self._gradients = {name: _unscaled(gradient, scale) for name, gradient in gradients.items()}

    def end(self, model: torch.nn.Module) -> None:
        """Write the gradients and the weights after the step.

        Raises:
            OSError: no space, no permission.
        """
        self._save(self._gradients, GRADIENTS)
        self._save(named_weights(unwrapped(model)), AFTER)
        from_rank_0([0.0], self._place)  # ranks wait here for the one that writes, too
        self._gradients = {}
        if self._steps.ends:  # the run that was drawn before gives way to a whole one: training may end within it
            for folder in self._drawn[:-RUN]:
                shutil.rmtree(folder, ignore_errors=True)
            self._drawn = self._drawn[-RUN:]

    def _random_states(self) -> dict[str, torch.Tensor]:
        """All ranks', on rank 0: each draws for its own part of the batch."""
        states = gathered([torch.get_rng_state()], True, self._place)
        return {RANDOM_OF.format(rank): state for rank, (state,) in enumerate(states)}

    def _save(self, tensors: dict[str, torch.Tensor], name: str) -> None:
        self._alive()
        save_whole(tensors, self._place, self._folder / name, self._alive)


def _unscaled(gradient: torch.Tensor, scale: float) -> torch.Tensor:
    """A copy; of half a precision that a scaler is for, small numbers would be lost."""
    if scale == 1.0:
        return gradient.clone()
    return gradient.to(torch.promote_types(gradient.dtype, torch.float32)) / scale
