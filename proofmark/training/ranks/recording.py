"""Steps that a rank records for the audit: weights before and after, and the gradients between."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from proofmark.training.outside.left import save_whole
from proofmark.training.ranks.model.own import named_gradients, named_weights
from proofmark.training.ranks.model.strategy import Place, largest, unwrapped
from proofmark.training.spec import AFTER, BEFORE, GRADIENTS, RANDOM, STEP, WHICH

if TYPE_CHECKING:
    from proofmark.training.ranks.account import Position

FURTHER, SHARE = 3, 0.125
"""Steps that are recorded after the first at most, and the share of steps that is drawn until then."""


class Recorder:
    """Of one rank; every rank calls every method. The first step is recorded, and some that are drawn by chance."""

    def __init__(self, directory: Path, place: Place) -> None:
        self._directory, self._place = directory, place
        self._left: int | None = None
        self._gradients: dict[str, torch.Tensor] = {}
        self._folder = directory

    def due(self) -> bool:
        """Whether the next step is to be recorded; rank 0 decides for all."""
        if self._left is None:
            self._left = FURTHER
            return True
        drawn = self._left > 0 and largest(random.SystemRandom().random() < SHARE * (not self._place.rank), self._place)
        self._left -= bool(drawn)
        return bool(drawn)

    def begin(self, model: torch.nn.Module, at: Position) -> None:
        """Before the step after `at`: its weights.

        Raises:
            OSError: no space, no permission.
        """
        self._folder = self._directory / STEP.format(at.steps + 1)
        if self._place.rank == 0:
            self._folder.mkdir(parents=True, exist_ok=True)
            which = {"step": at.steps + 1, "epoch": at.epoch, "batch": at.batch}
            (self._folder / WHICH).write_text(json.dumps(which), encoding="utf-8")
        self._save(named_weights(unwrapped(model)), BEFORE)
        self._save({RANDOM: torch.get_rng_state()}, RANDOM)

    def hold(self, model: torch.nn.Module) -> None:
        """Between its backward pass and the optimizer's step: the gradients, kept for `end`."""
        self._gradients = {name: gradient.clone() for name, gradient in named_gradients(unwrapped(model)).items()}

    def end(self, model: torch.nn.Module) -> None:
        """After it.

        Raises:
            OSError: no space, no permission.
        """
        self._save(self._gradients, GRADIENTS)
        self._save(named_weights(unwrapped(model)), AFTER)
        self._gradients = {}

    def _save(self, tensors: dict[str, torch.Tensor], name: str) -> None:
        save_whole(tensors, self._place, self._folder / name)
