"""The metric of a model over the whole validation set, by the referee's loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from proofmark.metric import Scoring
from proofmark.training.feeding.batches import evaluation_batches
from proofmark.training.ranks.model.gathering import from_rank_0, gathered
from proofmark.training.ranks.model.strategy import Place, on_device, summed

if TYPE_CHECKING:
    from proofmark.rules.aims import Aim
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingCase
    from proofmark.training.feeding.loading import OnDemand

Autocast = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Evaluated:
    """What an evaluation came to, the same on every rank.

    Attributes:
        values: of the metric by name, the headline first; None for what is not a finite number.
        weight: over how many things the metric is a mean; None where it is none.
        items: what was scored, in the unit of a mean's weight; of a metric that is no mean, samples.
        aims: what the values are to come to.
    """

    values: Mapping[str, float | None]
    weight: float | None
    items: float
    aims: Mapping[str, Aim]

    @property
    def metric(self) -> float:
        """The headline; no number where it is none."""
        value = next(iter(self.values.values()))
        return math.nan if value is None else value

    @property
    def others(self) -> dict[str, float | None]:
        """All values but the headline."""
        return dict([*self.values.items()][1:])

    @property
    def reached(self) -> bool:
        """Whether every value that has a target has reached it."""
        return all(
            aim.target is None or ((value := self.values[name]) is not None and aim.reached(value))
            for name, aim in self.aims.items()
        )


def evaluate(
    model: torch.nn.Module,
    case: TrainingCase,
    config: EffectiveConfig,
    validation: OnDemand,
    place: Place,
    autocast: Autocast,
    alive: Callable[[str], None],
) -> Evaluated:
    """The metric over all ranks, every sample once.

    Of a mean each rank's totals are summed up. Any other metric is rank 0's, which is fed with all ranks' answers: few
    can be put together of parts that are not of equal size.

    Args:
        model: in evaluation mode; without DDP, which would exchange buffers at each call.
        autocast: makes the context of a forward pass.
        alive: called with the phase that begins: before each batch, and before all is computed.

    Raises:
        StepError: the metric raised something, or has not the values that the case names.
    """
    scoring = Scoring.of(case, config)
    lists, count = evaluation_batches(validation.items, config.eval_batch_size, place.rank, place.world)
    with torch.no_grad():
        for number, batch in enumerate(validation.load(lists)):
            alive("evaluation")
            inputs, targets = on_device(batch, config, place)
            with autocast():
                output = model(*inputs)
            given = [*as_scored(output), targets]
            if scoring.mean is None:  # it may keep all answers: a view of what was given would keep the batch's slot
                given[:-1] = [answer.clone() for answer in given[:-1]]
            parts = gathered(given, number < count, place) if scoring.mean is None else [given][: number < count]
            for *outputs, wanted in parts:
                scoring.update(outputs, wanted)
    alive("scoring" if scoring.mean is None else "evaluation")
    return _evaluated(scoring, validation.items, place)


def _evaluated(scoring: Scoring, samples: int, place: Place) -> Evaluated:
    if scoring.mean is not None:
        scoring.mean.total, scoring.mean.weight = summed([scoring.mean.total, scoring.mean.weight], place)
        values = scoring.values()
    else:
        scoring.in_one_process()
        found = scoring.values() if place.rank == 0 else {}
        of_rank_0 = from_rank_0([math.nan if (own := found.get(n)) is None else own for n in scoring.aims], place)
        values = {
            name: value if math.isfinite(value) else None for name, value in zip(scoring.aims, of_rank_0, strict=True)
        }
    weight = None if scoring.mean is None else scoring.mean.weight
    return Evaluated(values, weight, samples if weight is None else weight, scoring.aims)


def as_fields(found: Evaluated) -> dict[str, Any]:
    """The fields of a rank's log: the metric, and its other values where there are any."""
    others = found.others
    metric = found.metric if math.isfinite(found.metric) else None
    return {"metric": metric, **({"others": others} if others else {})}


def as_scored(output: Any) -> list[torch.Tensor]:
    """What a metric is fed with: numbers in float32, whole ones, which are names, as they are."""
    return [answer.float() if answer.is_floating_point() else answer for answer in answers(output)]


def answers(output: Any) -> list[torch.Tensor]:
    """What a model returned, as a list."""
    return list(output) if isinstance(output, tuple) else [output]
