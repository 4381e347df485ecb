"""The metric of weights in the case's own model, on the processor, over all validation data or some drawn by chance."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from proofmark.metric import Scoring
from proofmark.rules.config import EffectiveConfig
from proofmark.training.case import TrainingCase, TrainingData
from proofmark.training.feeding.loading import RankLoader
from proofmark.training.ranks.model.evaluation import as_scored
from proofmark.training.ranks.model.own import named_weights

DRAWN, LEAST, ROWS = 10_000, 512, 16
"""Samples that are drawn of data of standard size; how many of them are evaluated at least, however long they take; and
how many in a batch: how far the metric of all data may be off is told by how batches differ."""


@dataclass(frozen=True)
class Value:
    """One of a metric's.

    Attributes:
        metric: what it comes to; None for no finite number.
        error: how far it may be from that of all the data, one standard error.
        weight: over how many things it is a mean; None where it is none.
    """

    metric: float | None
    error: float
    weight: float | None


@dataclass(frozen=True)
class Found:
    """A metric's values, the headline first, on `samples` of the data's `of`."""

    values: Mapping[str, Value]
    samples: int
    of: int

    @property
    def headline(self) -> Value:
        """The value that is judged first."""
        return next(iter(self.values.values()))


MOST_SHOWN, LONGEST_SHOWN = 8, 200
"""Tensors that are named where they don't fit, and characters of a name: a rank may have made it up."""


def filled(
    case: TrainingCase, config: EffectiveConfig, weights: Mapping[str, torch.Tensor]
) -> tuple[torch.nn.Module, list[str]]:
    """The case's own model with these weights, ready to be evaluated; and the tensors in which they don't fit it."""
    model = case.create_model(config)
    own = named_weights(model)
    shapes, there = ({name: t.shape for name, t in tensors.items()} for tensors in (own, weights))
    wrong = sorted(name for name in shapes.keys() | there.keys() if shapes.get(name) != there.get(name))
    if not wrong:
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(weights[name])
    return model.eval(), wrong


def shown(names: Sequence[str]) -> tuple[str, ...]:
    """So many names of tensors, and so much of each, that it can be told."""
    return tuple(name[:LONGEST_SHOWN] for name in names[:MOST_SHOWN])


def evaluated(
    model: torch.nn.Module, case: TrainingCase, config: EffectiveConfig, whole: bool, until: float = math.inf
) -> Found:
    """A model's metric over the `whole` validation set, or over DRAWN of its samples or, from LEAST on, those that are
    evaluated `until` then, in seconds of the monotonic clock.

    A metric that is no mean is always of all: that of a part is another figure, larger or smaller by nobody knows what.

    Raises:
        StepError: the data is not there, a sample can't be read, or the metric can't be computed.
    """
    data, scoring = case.build_dataset(config, "validation"), Scoring.of(case, config)
    whole = whole or scoring.mean is None
    chosen = range(len(data)) if whole else _drawn(len(data))
    rows = config.eval_batch_size if whole else ROWS
    lists = [list(chosen[start : start + rows]) for start in range(0, len(chosen), rows)]
    batches = _answered(model, data, lists, math.inf if whole else until)
    if scoring.mean is not None:
        scores = [scoring.mean.scored(outputs, targets) for outputs, targets in batches]
        samples = sum(map(len, lists[: len(scores)]))
        return Found({scoring.headline: _mean(scores, 1 - samples / len(data))}, samples, len(data))
    for outputs, targets in batches:
        scoring.update(outputs, targets)
    return Found({name: Value(value, 0.0, None) for name, value in scoring.values().items()}, len(data), len(data))


def _mean(scores: Sequence[tuple[float, float]], left: float) -> Value:
    """Of batches' sums and weights, where a share of the data is `left` out: by how they differ it may be off."""
    total, weight = (sum(column) for column in zip(*scores, strict=True))
    metric = total / weight if weight else math.nan
    squares, many = sum((score - metric * part) ** 2 for score, part in scores), len(scores)
    error = math.sqrt(left * squares * many / (many - 1)) / weight if left and many > 1 and weight else 0.0
    return Value(metric if math.isfinite(metric) else None, error, weight)


def _drawn(items: int) -> list[int]:
    return random.SystemRandom().sample(range(items), min(DRAWN, items))


def _answered(
    model: torch.nn.Module, data: TrainingData, lists: list[list[int]], until: float
) -> Iterator[tuple[list[torch.Tensor], torch.Tensor]]:
    """Answers to each batch, and its targets."""
    samples = 0
    with torch.no_grad():
        for rows, (inputs, targets) in zip(lists, RankLoader(data, workers=0).load(lists), strict=True):
            yield as_scored(model(*inputs)), targets
            samples += len(rows)
            if samples >= LEAST and time.monotonic() > until:
                return
