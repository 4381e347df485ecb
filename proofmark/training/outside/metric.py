"""The metric of weights in the case's own model, on the processor, over all validation data or some drawn by chance."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from proofmark.rules.config import EffectiveConfig
from proofmark.training.case import TrainingCase, TrainingData
from proofmark.training.ranks.loading import RankLoader
from proofmark.training.ranks.model.evaluation import answers
from proofmark.training.ranks.model.own import named_weights

DRAWN, LEAST, ROWS = 10_000, 512, 16
"""Samples that are drawn of data of standard size, of which so many at least are evaluated however long they take; and
how many are at once: by how their batches differ it is told how far the metric of all may be."""


@dataclass(frozen=True)
class Found:
    """A metric, how far it may be from that of all the data (one standard error), and what it is of.

    `weight` is over how many things it is a mean, `samples` on so many of the data's `of`.
    """

    metric: float
    error: float
    weight: float
    samples: int
    of: int


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


def evaluated(
    model: torch.nn.Module, case: TrainingCase, config: EffectiveConfig, whole: bool, until: float = math.inf
) -> Found:
    """A model's metric over the `whole` validation set, or over DRAWN of its samples or, from LEAST on, those that are
    evaluated `until` then, in seconds of the monotonic clock.

    Raises:
        StepError: the data is not there, or a sample can't be read.
    """
    data = case.build_dataset(config, "validation")
    chosen = range(len(data)) if whole else _drawn(len(data))
    rows = config.eval_batch_size if whole else ROWS
    lists = [list(chosen[start : start + rows]) for start in range(0, len(chosen), rows)]
    scores = list(_scores(model, case, data, lists, math.inf if whole else until))
    samples = sum(map(len, lists[: len(scores)]))
    total, weight = (sum(column) for column in zip(*scores, strict=True))
    metric = total / weight if weight else math.nan
    left = 1 - samples / len(data)
    squares = sum((score - metric * part) ** 2 for score, part in scores)
    many = len(scores)
    error = math.sqrt(left * squares * many / (many - 1)) / weight if left and many > 1 and weight else 0.0
    return Found(metric, error, weight, samples, len(data))


def _drawn(items: int) -> list[int]:
    return random.SystemRandom().sample(range(items), min(DRAWN, items))


def _scores(
    model: torch.nn.Module, case: TrainingCase, data: TrainingData, lists: list[list[int]], until: float
) -> Iterator[tuple[float, float]]:
    samples = 0
    with torch.no_grad():
        for rows, (inputs, targets) in zip(lists, RankLoader(data, workers=0).load(lists), strict=True):
            yield case.evaluator([answer.float() for answer in answers(model(*inputs))], targets)
            samples += len(rows)
            if samples >= LEAST and time.monotonic() > until:
                return
