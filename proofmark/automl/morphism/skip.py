"""A way past some layers: added, or joined to their channels."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.automl.morphism.operations import AddSkip, ConcatSkip, IllegalOperation
from proofmark.automl.morphism.splice import known, prefix, spliced
from proofmark.automl.network.graph import Graph
from proofmark.automl.network.layers import Add, BatchNorm, Concat, Convolution, MaxPool, Node, Relu

_STRIDES = (1, 2, 4, 8, 16)
_LARGEST_POOL = 15


def skipped(graph: Graph, operation: AddSkip | ConcatSkip) -> Graph:
    """The child's architecture.

    Raises:
        IllegalOperation: no such ReLU or batch norm, the wrong way round, no stride leads from one image to the other,
            or there is such a skip already.
        ValidationError: the child is too large.
    """
    source, target = known(graph, operation.source, Relu).name, known(graph, operation.target, BatchNorm).name
    order = list(graph.by_name)
    if order.index(source) > order.index(target):
        raise IllegalOperation(f"node {source} comes after {target}; a skip leads forward")
    stride = _stride(graph.shapes[source].size, graph.shapes[target].size)
    if stride is None:
        raise IllegalOperation(
            f"no stride leads from {source}, {graph.shapes[source]}, to {target}, {graph.shapes[target]}"
        )
    joint = Add if isinstance(operation, AddSkip) else Concat
    if source in _sources(graph, target, joint):
        raise IllegalOperation(f"there is a skip from {source} to {target} already")
    own, channels = prefix(graph), graph.shapes[target].channels
    if joint is Add:
        return spliced(graph, target, _projection(own, source, target, channels, stride))
    return spliced(graph, target, _joined(own, source, target, channels, stride))


def places_to_skip(graph: Graph) -> list[tuple[str, ...]]:
    """Where a skip may lead from and to; whether there is one already is not looked at."""
    found, sources = list[tuple[str, ...]](), dict[int, list[str]]()
    for node in graph.nodes:
        size = graph.shapes[node.name].size
        if isinstance(node, Relu) and size:
            sources.setdefault(size, []).append(node.name)
        if isinstance(node, BatchNorm) and size:
            found += [(name, node.name) for large in sources if _stride(large, size) for name in sources[large]]
    return found


def origin(graph: Graph, name: str) -> str:
    """Where a skip comes from: before its norm, its convolution of kernel 1, or its pool."""
    node = graph.by_name.get(name)
    while isinstance(node, BatchNorm | MaxPool) or (node is not None and _is_pointwise(node)):
        name = node.inputs[0]
        node = graph.by_name.get(name)
    return name


def _projection(own: str, source: str, target: str, channels: int, stride: int) -> tuple[Node, ...]:
    return (
        Convolution(name=f"{own}_conv", inputs=(source,), channels=channels, kernel=1, stride=stride),
        BatchNorm(name=f"{own}_norm", inputs=(f"{own}_conv",)),
        Add(name=f"{own}_add", inputs=(target, f"{own}_norm")),
    )


def _joined(own: str, source: str, target: str, channels: int, stride: int) -> tuple[Node, ...]:
    beside: tuple[Node, ...] = ()
    if stride > 1:
        kernel = min(stride + 1, _LARGEST_POOL)
        beside = (MaxPool(name=f"{own}_pool", inputs=(source,), kernel=kernel, stride=stride),)
    return (
        *beside,
        Concat(name=f"{own}_concat", inputs=(target, f"{own}_pool" if beside else source)),
        Convolution(name=f"{own}_conv", inputs=(f"{own}_concat",), channels=channels, kernel=1),
    )


def _stride(large: int | None, small: int | None) -> int | None:
    if large is None or small is None:
        return None
    return next((stride for stride in _STRIDES if -(-large // stride) == small), None)


def _sources(graph: Graph, target: str, joint: type[Add] | type[Concat]) -> Iterator[str]:
    """Of the skips that lead to a node: its result goes through their joints, one after the other."""
    ahead, seen = [target], set[str]()
    while ahead:
        name = ahead.pop()
        for node in graph.consumers[name]:
            if node.name in seen or not isinstance(node, Add | Concat):
                continue
            seen.add(node.name)
            if isinstance(node, joint):
                yield from (origin(graph, other) for other in node.inputs if other != name)
            behind = graph.consumers[node.name] if isinstance(node, Concat) else (node,)
            ahead += [each.name for each in behind if each is node or _is_pointwise(each)]


def _is_pointwise(node: Node) -> bool:
    return isinstance(node, Convolution) and node.kernel == 1
