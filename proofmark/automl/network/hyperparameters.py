"""Hyper-parameters that are part of a network."""

from __future__ import annotations

from typing import TypeGuard

from proofmark.automl.network.graph import IMAGE, Graph
from proofmark.automl.network.layers import Convolution, Dropout, Node

DROPOUT = "dropout"
"""The node before the last that `with_dropout` adds where there is none."""


def with_dropout(graph: Graph, rate: float) -> Graph:
    """A network with that dropout, 0 to 1, before its last layer; with none at 0.

    Raises:
        ValidationError: no rate.
    """
    *before, last = graph.nodes
    (source,) = last.inputs
    if isinstance(there := graph.by_name.get(source), Dropout) and len(graph.consumers[source]) == 1:
        before = [node for node in before if node is not there]
        (source,) = there.inputs
    name = DROPOUT if all(node.name != DROPOUT for node in before) else f"{last.name}_{DROPOUT}"
    added = [Dropout(name=name, inputs=(source,), rate=rate)]
    if rate == 0:
        return graph.with_nodes([*before, last.model_copy(update={"inputs": (source,)})])
    return graph.with_nodes([*before, *added, last.model_copy(update={"inputs": (name,)})])


def with_kernel(graph: Graph, kernel: int) -> Graph:
    """A network whose convolutions have that kernel: not those of kernel 1, nor those of the image.

    Weights: see `inherit.resized`.

    Raises:
        ValidationError: no odd number from 1 to 15.
    """
    return graph.with_nodes(
        [type(node)(**{**dict(node), "kernel": kernel}) if _has_it(node) else node for node in graph.nodes]
    )


def kernels(graph: Graph) -> set[int]:
    """Kernel sizes that `with_kernel` would change; several in a child whose new convolutions still differ from its
    parent's."""
    return {node.kernel for node in graph.nodes if _has_it(node)}


def _has_it(node: Node) -> TypeGuard[Convolution]:
    return isinstance(node, Convolution) and node.kernel > 1 and IMAGE not in node.inputs
