"""Random networks: any layers, any way of joining them."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from proofmark.automl.distance import Descriptor, distances
from proofmark.automl.morphism.grow import random_growth
from proofmark.automl.morphism.operations import Operation
from proofmark.automl.network.graph import IMAGE, Graph
from proofmark.automl.network.layers import (
    Add,
    BatchNorm,
    Concat,
    Convolution,
    Dense,
    Dropout,
    GlobalAveragePool,
    MaxPool,
    Node,
    Relu,
    Shape,
)


class _Sketch:
    """A graph as it grows, and the shapes in it."""

    def __init__(self, channels: int, size: int) -> None:
        self.channels, self.size = channels, size
        self.nodes: list[Node] = []
        self.shapes = {IMAGE: Shape(channels, size)}

    def add(self, kind: type[Node], *inputs: str, **rest: int | float) -> str:
        name = f"n{len(self.nodes)}"
        node = kind(name=name, inputs=inputs, **rest)
        self.shapes[name] = node.shape(tuple(self.shapes[each] for each in inputs))
        self.nodes.append(node)
        return name


def random_graph(chance: random.Random, dropout: float = 0.0) -> Graph:
    """Up to about 25 nodes. Each convolution is followed by a batch norm, so that no number grows out of bounds."""
    sketch = _Sketch(chance.randint(1, 3), chance.choice((5, 8)))
    stem = sketch.add(Convolution, IMAGE, channels=chance.choice((2, 4)), kernel=3, stride=1)
    images = [sketch.add(Relu, sketch.add(BatchNorm, stem))]
    for _ in range(chance.randint(0, 6)):
        images.append(_grow(sketch, chance, images))
    taken = {name for node in sketch.nodes for name in node.inputs}
    loose = [sketch.add(GlobalAveragePool, name) for name in images if name not in taken]
    vector = loose[0]
    for name in loose[1:]:
        vector = sketch.add(Concat, vector, name)
    if chance.random() < 0.3:
        vector = sketch.add(Relu, sketch.add(Dense, vector, channels=4))
    if dropout:
        vector = sketch.add(Dropout, vector, rate=dropout)
    sketch.add(Dense, vector, channels=3)
    return Graph(channels=sketch.channels, size=sketch.size, nodes=tuple(sketch.nodes))


def _grow(sketch: _Sketch, chance: random.Random, images: list[str]) -> str:
    one = chance.choice(images)
    alike = [name for name in images if sketch.shapes[name] == sketch.shapes[one]]
    kind = chance.choice((Convolution, Convolution, Add, Concat, MaxPool, Dropout))
    if kind is Add:
        return sketch.add(Relu, sketch.add(Add, one, chance.choice(alike)))
    if kind is Concat:
        fitting = [name for name in images if sketch.shapes[name].size == sketch.shapes[one].size]
        return sketch.add(Concat, one, chance.choice(fitting))
    if kind is MaxPool:
        return sketch.add(MaxPool, one, kernel=3, stride=chance.choice((1, 2)))
    if kind is Dropout:
        return sketch.add(Dropout, one, rate=0.0)
    conv = sketch.add(
        Convolution, one, channels=chance.choice((2, 4)), kernel=chance.choice((1, 3)), stride=chance.choice((1, 1, 2))
    )
    norm = sketch.add(BatchNorm, conv)
    return sketch.add(Relu, norm) if chance.random() < 0.8 else norm


def distance(one: Graph, other: Graph) -> float:
    """Of two networks."""
    return float(distances([Descriptor.of(one)], [Descriptor.of(other)])[0, 0])


def random_chain(graph: Graph, chance: random.Random, most: int = 8) -> tuple[list[Operation], Graph]:
    """Up to `most` operations, one after the other, and what they make of a graph."""
    operations = []
    for _ in range(most):
        step = random_growth(graph, chance)
        if step is not None and step[1].parameters < 200_000:
            operations.append(step[0])
            graph = step[1]
    return operations, graph


chances = st.integers(0, 2**32).map(random.Random)
"""Sources of chance; what they give shrinks no further than to another number."""
