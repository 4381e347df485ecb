"""Recorded gradients beside replayed ones: over all parameters, and matrix by matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from proofmark.training.outside.vectors import MOST, Tensors, along, apart

FEW = 0.05
"""Share of the matrices that `astray` leaves out: roundings may make a few of them gradients of their own."""

LOUD = 1.0
"""In lengths of a matrix's gradient, the noise beyond which a replay doesn't tell what it is."""


@dataclass(frozen=True)
class Compared:
    """What a step's recorded gradients are beside replayed ones.

    Attributes:
        gradient, noise, astray, stray, drawn: as in `Replayed`.
    """

    gradient: float
    noise: float = 0.0
    astray: float = 0.0
    stray: str | None = None
    drawn: float | None = None

    @classmethod
    def of(cls, recorded: Tensors, replays: Sequence[Tensors]) -> Compared:
        """Compare with one replay, or with the mean of several."""
        if len(replays) == 1:
            return cls(apart(recorded, replays[0], replays[0]), 0.0, *_astray(recorded, replays[0]))
        mean = {name: torch.stack([each[name] for each in replays]).mean(0) for name in replays[0]}
        clear = {
            name: tensor
            for name, tensor in mean.items()
            if _noise([{name: each[name]} for each in replays], {name: tensor}) <= LOUD
        }
        return cls(apart(recorded, mean, mean), _noise(replays, mean), *_astray(recorded, clear))


def _astray(recorded: Tensors, wanted: Tensors) -> tuple[float, str | None]:
    """By how much of its length a matrix's gradient lacks the replayed one, or has too much of it, at most, but for a
    FEW of them; and the matrix that is worst."""
    found = sorted(((_off(share), name) for name, share in along(recorded, wanted)), reverse=True)
    return (found[int(FEW * len(found))][0], found[0][1]) if found else (0.0, None)


def _off(share: float) -> float:
    return min(MOST, abs(share - 1)) if math.isfinite(share) else MOST


def _noise(replays: Sequence[Tensors], mean: Tensors) -> float:
    """One standard deviation of replays from their mean, in lengths of that."""
    return float((sum(apart(each, mean, mean) ** 2 for each in replays) / (len(replays) - 1)) ** 0.5)
