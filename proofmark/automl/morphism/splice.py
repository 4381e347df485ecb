"""New nodes between a node and those that take from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from proofmark.automl.morphism.operations import IllegalOperation
from proofmark.automl.network.graph import Graph
from proofmark.automl.network.layers import Layer, Node

N = TypeVar("N", bound=Layer)

_MADE = re.compile(r"m(\d+)_\w+")


def prefix(graph: Graph) -> str:
    """The prefix for the names of nodes that a graph's next operation adds: m1, m2 ..."""
    made = [int(found[1]) for node in graph.nodes if (found := _MADE.fullmatch(node.name))]
    return f"m{max(made, default=0) + 1}"


def known(graph: Graph, name: str, kind: type[N]) -> N:
    """A node of a kind.

    Raises:
        IllegalOperation: there is none.
    """
    node = graph.by_name.get(name)
    if node is None:
        raise IllegalOperation(f"there is no node {name}")
    if not isinstance(node, kind):
        raise IllegalOperation(f"node {name} is a {node.op}; expected a {kind.model_fields['op'].default}")
    return node


def spliced(graph: Graph, after: str, new: Sequence[Node]) -> Graph:
    """A graph with nodes inserted behind one of its own; what took from that takes from the last of them."""
    nodes = list[Node]()
    for node in graph.nodes:
        inputs = tuple(new[-1].name if name == after else name for name in node.inputs)
        nodes.append(node if inputs == node.inputs else node.model_copy(update={"inputs": inputs}))
        if node.name == after:
            nodes.extend(new)
    return graph.with_nodes(nodes)
