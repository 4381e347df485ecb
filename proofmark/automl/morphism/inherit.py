"""A child's weights, by which it computes what its parent does, and what its optimiser goes on with.

Deeper and the skips change no result by a bit: what is new is multiplied by zero, or is an identity. Wider adds zeros
to sums, whose order may change with their length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from proofmark.automl.morphism.grow import grown
from proofmark.automl.morphism.operations import ConcatSkip, Operation, Wider
from proofmark.automl.morphism.wider import Integers, copies_of
from proofmark.automl.network.graph import Graph
from proofmark.automl.network.layers import BatchNorm, Convolution, Dense, Node
from proofmark.automl.network.module import GraphNetwork, Weights, fresh_tensor, refuse


class Inheritance(NamedTuple):
    """A child. `momentum` is empty where the parent's was."""

    graph: Graph
    weights: Weights
    momentum: Weights


def inherit(
    graph: Graph,
    operations: Sequence[Operation],
    weights: Mapping[str, Tensor],
    momentum: Mapping[str, Tensor] | None = None,
    seed: int = 0,
) -> Inheritance:
    """What operations make of a network. The parent's tensors are not changed; a child may share them.

    Args:
        weights: the graph's; their kernels may be of other sizes, see `resized`.
        momentum: SGD's, by parameter; that of new entries is zero.
        seed: of what is drawn at random for new filters.

    Raises:
        IllegalOperation: one can't be done.
        StepError: weights or momentum are not the graph's.
    """
    strange = [f"a momentum of {name}" for name, each in (momentum or {}).items() if not _is_like(each, weights, name)]
    refuse([*GraphNetwork(graph).misfits(weights, dimensions=2), *strange])
    kept, gathered = dict(weights), dict(momentum or {})
    for operation in operations:
        child = grown(graph, operation)
        if isinstance(operation, Wider):
            copies = copies_of(graph, operation)
            kept, gathered = _doubled(graph, copies, kept, _again), _doubled(graph, copies, gathered, _once)
        else:
            new = _begun(graph, child, operation, kept, seed)
            parameters = {name: tensor for name, tensor in new.items() if _is_learned(name)}
            kept |= new
            gathered |= {name: torch.zeros_like(tensor) for name, tensor in parameters.items()} if gathered else {}
        graph = child
    return Inheritance(graph, kept, gathered)


def resized(graph: Graph, weights: Mapping[str, Tensor]) -> Weights:
    """Weights of the same graph with other kernels, or momentum, fitted to its own: zeros around, or the middle.

    The function is preserved where kernels grow.
    """
    fitted = dict(weights)
    for node in graph.nodes:
        if isinstance(node, Convolution) and (name := f"{node.name}.weight") in weights:
            more = (node.kernel - weights[name].shape[-1]) // 2
            fitted[name] = torch.nn.functional.pad(weights[name], (more,) * 4)
    return fitted


def _begun(parent: Graph, child: Graph, operation: Operation, weights: Weights, seed: int) -> Weights:
    """Initial weights of the nodes that an operation has added."""
    example = next(tensor for tensor in weights.values() if tensor.is_floating_point())
    added = [node for node in child.nodes if node.name not in parent.by_name]
    new: Weights = {}
    for name, empty in GraphNetwork(child).weights().items():
        node, _, kind = name.rpartition(".")
        if node in parent.by_name:
            continue
        like = empty.to(example.dtype) if empty.is_floating_point() else empty
        new[name] = fresh_tensor(child.by_name[node], kind, like, seed).to(example.device)
    for each in added:
        if isinstance(each, BatchNorm):
            new[f"{each.name}.weight"].zero_()
        elif isinstance(each, Convolution) and isinstance(operation, ConcatSkip):
            torch.nn.init.dirac_(new[f"{each.name}.weight"])
    return new


Widening = Callable[[Tensor, Tensor, int], Tensor]
"""A tensor, how many copies each entry of a dimension gets, and which dimension."""


def _again(tensor: Tensor, copies: Tensor, dimension: int) -> Tensor:
    return tensor.repeat_interleave(copies.to(tensor.device), dimension)


def _once(tensor: Tensor, copies: Tensor, dimension: int) -> Tensor:
    """Each entry, and zeros in place of its further copies."""
    first = copies.cumsum(0) - copies
    shape = list(tensor.shape)
    shape[dimension] = int(copies.sum())
    return tensor.new_zeros(shape).index_copy_(dimension, first.to(tensor.device), tensor)


def _doubled(graph: Graph, copies: Mapping[str, Integers], tensors: Weights, along_filters: Widening) -> Weights:
    """Wider tensors: filters as `along_filters` says, and for each doubled input the weight for its first copy, then
    zeros."""
    wide: Weights = {}
    for name, tensor in tensors.items():
        node = graph.by_name[name.rpartition(".")[0]]
        for dimension, each, widen in _dimensions(node, copies, tensor, along_filters):
            if (each > 1).any():
                tensor = widen(tensor, torch.from_numpy(each), dimension)
        wide[name] = tensor
    return wide


def _dimensions(
    node: Node, copies: Mapping[str, Integers], tensor: Tensor, along_filters: Widening
) -> list[tuple[int, Integers, Widening]]:
    if tensor.dim() == 0:
        return []
    outputs = (0, copies[node.name], along_filters)
    if isinstance(node, Convolution | Dense) and tensor.dim() > 1:
        return [outputs, (1, copies[node.inputs[0]], _once)]
    return [outputs]


def _is_like(tensor: Tensor, weights: Mapping[str, Tensor], name: str) -> bool:
    return name in weights and weights[name].shape == tensor.shape


def _is_learned(name: str) -> bool:
    return name.rpartition(".")[2] in ("weight", "bias")
