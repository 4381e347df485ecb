"""A block more."""

from __future__ import annotations

from proofmark.automl.morphism.operations import Deeper, IllegalOperation
from proofmark.automl.morphism.splice import known, prefix, spliced
from proofmark.automl.network.graph import Graph
from proofmark.automl.network.layers import Add, BatchNorm, Convolution, Relu

KERNEL = 3


def deepened(graph: Graph, operation: Deeper) -> Graph:
    """The child's architecture.

    Raises:
        IllegalOperation: no ReLU of that name, or of no image.
        ValidationError: the child is too large.
    """
    after = known(graph, operation.after, Relu).name
    shape = graph.shapes[after]
    if shape.size is None:
        raise IllegalOperation(f"node {after} gives a vector; expected an image")
    own = prefix(graph)
    return spliced(
        graph,
        after,
        (
            Convolution(name=f"{own}_conv", inputs=(after,), channels=shape.channels, kernel=KERNEL),
            BatchNorm(name=f"{own}_norm", inputs=(f"{own}_conv",)),
            Add(name=f"{own}_add", inputs=(after, f"{own}_norm")),
            Relu(name=f"{own}_relu", inputs=(f"{own}_add",)),
        ),
    )


def places_to_deepen(graph: Graph) -> list[tuple[str, ...]]:
    """The nodes behind which a block may be inserted."""
    return [(n.name,) for n in graph.nodes if isinstance(n, Relu) and graph.shapes[n.name].size]
