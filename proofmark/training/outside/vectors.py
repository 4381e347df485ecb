"""Tensors by their names, as one long vector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from proofmark.training.ranks.model.own import named_weights

Tensors = Mapping[str, torch.Tensor]

MOST = 1e9
"""The largest distance that is reported."""


def fill(model: torch.nn.Module, weights: Tensors) -> None:
    """Copy weights into a model."""
    with torch.no_grad():
        for name, tensor in named_weights(model).items():
            tensor.copy_(weights[name])


def finite(tensors: Tensors) -> bool:
    """Whether all are finite numbers."""
    return all(bool(tensor.isfinite().all()) for tensor in tensors.values())


def length(tensors: Tensors) -> float:
    """The Euclidean length of the vector."""
    return float(sum(float(tensor.double().square().sum()) for tensor in tensors.values()) ** 0.5)


def apart(one: Tensors, other: Tensors, unit: Tensors) -> float:
    """The length of the difference, in lengths of `unit`; what one lacks is 0 there. MOST at most."""
    names, nothing = one.keys() | other.keys(), torch.zeros(())
    off = length({name: one.get(name, nothing).double() - other.get(name, nothing).double() for name in names})
    if not off < 1e150:
        return MOST
    whole = length(unit)
    return min(MOST, off / whole) if whole else (0.0 if not off else MOST)


def along(one: Tensors, other: Tensors) -> Iterator[tuple[str, float]]:
    """Of each matrix of `other` that is not nothing, and each tensor of more dimensions, how much of it is in its
    namesake: 1 in one that differs across to it, however far, 0 in one that has nothing to do with it, or is not there.

    A vector may be nothing but roundings (the gradient of a bias whose effect a normalisation takes away), and what is
    along of those is by chance.
    """
    for name, tensor in other.items():
        unit = float(tensor.double().square().sum())
        if tensor.dim() > 1 and unit:
            found = float((one[name].double() * tensor.double()).sum()) if name in one else 0.0
            yield name, found / unit
