"""Filters more, and what must be widened with them.

Each channel of each tensor is a class of channels that must be widened together: a sum makes one of two. Where a class
is widened, its channel becomes two neighbours in every tensor, so that sums and concatenations still fit.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from proofmark.automl.morphism.operations import IllegalOperation, Wider
from proofmark.automl.morphism.splice import known
from proofmark.automl.network.graph import IMAGE, Graph
from proofmark.automl.network.layers import Add, Concat, Convolution, Dense

Integers = NDArray[np.int64]


def widened(graph: Graph, operation: Wider) -> Graph:
    """The child's architecture.

    Raises:
        IllegalOperation: no convolution of that name, or what it gives is added to the image or to a dense layer's.
        ValidationError: the child is too large.
    """
    copies = copies_of(graph, operation)
    convolutions = (node for node in graph.nodes if isinstance(node, Convolution))
    wide = {each.name: each.model_copy(update={"channels": int(copies[each.name].sum())}) for each in convolutions}
    return graph.with_nodes([wide.get(node.name, node) for node in graph.nodes])


def places_to_widen(graph: Graph) -> list[tuple[str, ...]]:
    """The convolutions; whether each may be widened is not looked at."""
    return [(node.name,) for node in graph.nodes if isinstance(node, Convolution)]


def copies_of(graph: Graph, operation: Wider) -> Mapping[str, Integers]:
    """How many channels the child has for each that a tensor has: 1 or 2, by the node that gives it.

    Raises:
        IllegalOperation: as `widened`.
    """
    conv = known(graph, operation.conv, Convolution)
    channels, classes = _channels(graph)
    doubled = np.zeros(int(classes.max()) + 1, dtype=np.int64)
    doubled[classes[channels[conv.name]]] = 1
    more = doubled[classes]
    fixed = [IMAGE, *(node.name for node in graph.nodes if isinstance(node, Dense))]
    for name in fixed:
        if more[channels[name]].any():
            raise IllegalOperation(f"what node {conv.name} gives is added to what {name} gives, which stays as it is")
    tensors = {id(each): each for each in channels.values()}  # many nodes hand on what they are given
    copies = {number: 1 + more[each] for number, each in tensors.items()}
    return {name: copies[id(each)] for name, each in channels.items()}


def _channels(graph: Graph) -> tuple[Mapping[str, Integers], Integers]:
    """The number of each channel of each tensor, by node; and of each number the class."""
    channels: dict[str, Integers] = {IMAGE: np.arange(graph.channels)}
    total, left, right = graph.channels, list[Integers](), list[Integers]()
    for node in graph.nodes:
        if isinstance(node, Convolution | Dense):
            channels[node.name] = np.arange(total, total + node.channels)
            total += node.channels
        elif isinstance(node, Concat):
            channels[node.name] = np.concatenate([channels[name] for name in node.inputs])
        else:
            channels[node.name] = channels[node.inputs[0]]
        if isinstance(node, Add):
            left.append(channels[node.inputs[0]])
            right.append(channels[node.inputs[1]])
    edges = (np.concatenate([np.zeros(0, int), *left]), np.concatenate([np.zeros(0, int), *right]))
    sums = coo_array((np.ones(len(edges[0])), edges), shape=(total, total))
    return channels, connected_components(sums, directed=False)[1]
