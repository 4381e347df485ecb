"""The metric of a model over the whole validation set, by the referee's loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch

from proofmark.training.ranks.batches import evaluation_batches
from proofmark.training.ranks.model.strategy import Place, on_device, summed

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingCase
    from proofmark.training.ranks.loading import RankLoader

Autocast = Callable[[], AbstractContextManager[Any]]


def evaluate(
    model: torch.nn.Module,
    case: TrainingCase,
    config: EffectiveConfig,
    validation: RankLoader,
    place: Place,
    autocast: Autocast,
    alive: Callable[[], None],
) -> tuple[float, float]:
    """The metric's sum over all ranks, every sample once, and over how many things it sums.

    Args:
        model: in evaluation mode; without DDP, which would exchange buffers at each call.
        autocast: makes the context of a forward pass.
        alive: called before each batch.
    """
    lists, count = evaluation_batches(len(validation.dataset), config.eval_batch_size, place.rank, place.world)
    total = items = 0.0
    with torch.no_grad():
        for number, batch in enumerate(validation.load(lists)):
            alive()
            inputs, targets = on_device(batch, config, place)
            with autocast():
                output = model(*inputs)
            if number < count:
                score, weight = case.evaluator([answer.float() for answer in answers(output)], targets)
                total, items = total + score, items + weight
    total, items = summed([total, items], place)
    return total, items


def answers(output: Any) -> list[torch.Tensor]:
    """What a model returned, as a list."""
    return list(output) if isinstance(output, tuple) else [output]
