"""An image classifier as a typed graph: immutable, JSON, and whole wherever there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from proofmark.automl.network.layers import MOST_CHANNELS, BadLayer, Channels, Dense, Node, Shape
from proofmark.errors import ConfigurationError, Problem, reason
from proofmark.plain_json import read_json
from proofmark.record.parts import Part
from proofmark.rules.yaml.typed import problems_of

IMAGE = "image"
"""The name that nodes know the network's input by."""

MOST_NODES = 1000
MOST_PARAMETERS = 1 << 30
"""As many as the original allows."""

MOST_GROWN = 500
"""Nodes of what morphisms make."""

MOST_ACTIVATIONS = 1 << 30
"""Numbers that all nodes give for one image."""


class Graph(Part):
    """Nodes in an order in which each follows those it takes from; the last one gives the classes' logits.

    Attributes:
        channels: of the image.
        size: its height and width.

    Raises:
        ValidationError: with every problem; one that concerns several nodes is a line of its text.
    """

    channels: Channels
    size: int = Field(strict=True, ge=1, le=1024)
    nodes: tuple[Node, ...] = Field(min_length=1, max_length=MOST_NODES)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        shapes, problems = _infer(self.channels, self.size, self.nodes)
        self.__dict__["shapes"] = shapes  # as a cached property would have it: most of the cost of a graph
        if problems := problems or [*_ending(self.nodes), *_size(self)]:
            raise ValueError("\n".join(problems))
        return self

    @cached_property
    def shapes(self) -> Mapping[str, Shape]:
        """The shape of each node's output, by its name; that of the input by `IMAGE`."""
        return _infer(self.channels, self.size, self.nodes)[0]

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """The nodes by their names."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Node, ...]]:
        """The nodes that take the output of each node, and of `IMAGE`."""
        found: dict[str, list[Node]] = {name: [] for name in self.shapes}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found[name].append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def given(self, node: Node) -> tuple[Shape, ...]:
        """The shapes of a node's inputs."""
        return tuple(self.shapes[name] for name in node.inputs)

    @cached_property
    def parameters(self) -> int:
        """How many numbers are learned."""
        return sum(node.parameters(self.given(node)) for node in self.nodes)

    @property
    def classes(self) -> int:
        """How many logits the last node gives."""
        return self.shapes[self.nodes[-1].name].channels

    def with_nodes(self, nodes: Sequence[Node]) -> Graph:
        """A graph for the same images, of other nodes.

        Raises:
            ValidationError: those make no graph.
        """
        return Graph(channels=self.channels, size=self.size, nodes=tuple(nodes))


def parse_graph(value: Any, where: str) -> Graph:
    """A graph from a plain value that came from a disk or a wire.

    Args:
        where: its file, for people.

    Raises:
        ConfigurationError: with every problem in it.
    """
    try:
        return TypeAdapter(Graph).validate_python(value)
    except ValidationError as error:
        problems = problems_of(error, where)
    raise ConfigurationError(
        [Problem(where, each.key, line) for each in problems for line in each.what.splitlines() or [""]]
    )


def read_graph(path: Path) -> Graph:
    """A graph from a JSON file.

    Raises:
        ConfigurationError: unreadable, not JSON, or no graph; every problem in it.
    """
    try:
        value = read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError([Problem(str(path), "", f"not a graph's file: {reason(error)}")]) from None
    return parse_graph(value, str(path))


def _infer(channels: int, size: int, nodes: Sequence[Node]) -> tuple[dict[str, Shape], list[str]]:
    """Shapes, and what is wrong with single nodes. What follows a problem is not said again."""
    shapes: dict[str, Shape] = {IMAGE: Shape(channels, size)}
    problems, broken = list[str](), set[str]()
    for node in nodes:
        if node.name in shapes or node.name in broken:
            problems.append(f"node {node.name}: another node has this name")
            continue
        unknown = [name for name in node.inputs if name not in shapes and name not in broken]
        problems += [f"node {node.name}: takes from {name}, which is not an earlier node" for name in unknown]
        if unknown or any(name in broken for name in node.inputs):
            broken.add(node.name)
            continue
        try:
            shapes[node.name] = node.shape(tuple(shapes[name] for name in node.inputs))
        except BadLayer as error:
            problems.append(f"node {node.name}: {error}")
            broken.add(node.name)
    return shapes, problems


def _ending(nodes: Sequence[Node]) -> list[str]:
    last, taken = nodes[-1], {name for node in nodes for name in node.inputs}
    loose = [node.name for node in nodes[:-1] if node.name not in taken]
    problems = [f"node {name}: nothing takes what it gives; only the last node's is the network's" for name in loose]
    if not isinstance(last, Dense):
        problems.append(f"node {last.name}: it is the last and a {last.op}; expected a dense that gives the logits")
    return problems


def _size(graph: Graph) -> list[str]:
    problems, shapes = [], graph.shapes.values()
    if (most := max(shape.channels for shape in shapes)) > MOST_CHANNELS:
        problems.append(f"a tensor has {most} channels; at most {MOST_CHANNELS} are allowed")
    if graph.parameters > MOST_PARAMETERS:
        problems.append(f"{graph.parameters} parameters; at most {MOST_PARAMETERS} are allowed")
    activations = sum(shape.channels * (shape.size or 1) ** 2 for shape in shapes)
    if activations > MOST_ACTIVATIONS:
        problems.append(f"{activations} activations per image; at most {MOST_ACTIVATIONS} are allowed")
    return problems
