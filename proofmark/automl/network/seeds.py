"""The networks that a search begins with."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.automl.network.graph import IMAGE, Graph
from proofmark.automl.network.layers import Add, BatchNorm, Convolution, Dense, GlobalAveragePool, MaxPool, Node, Relu


def bottleneck_network(classes: int = 1000, size: int = 224, channels: int = 3) -> Graph:
    """ResNet-50 v1 (He et al. 2015, table 1): the stride is in a block's first convolution, of kernel 1.

    Without arguments 25,557,032 parameters, in 53 convolutions, 53 batch norms, 49 ReLUs, 16 sums.
    """
    nodes: list[Node] = []
    last = _conv_norm(nodes, "stem", IMAGE, 64, 7, 2)
    nodes += [
        Relu(name="stem_relu", inputs=(last,)),
        MaxPool(name="stem_pool", inputs=("stem_relu",), kernel=3, stride=2),
    ]
    last = "stem_pool"
    for stage, (depth, width) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512), strict=True), start=1):
        for block in range(1, depth + 1):
            stride = 2 if stage > 1 and block == 1 else 1
            layers = ((width, 1, stride), (width, 3, 1), (4 * width, 1, 1))
            last = _block(nodes, f"s{stage}b{block}", last, layers, project=block == 1)
    return _classified(nodes, last, classes, size, channels)


def small_network(classes: int = 10, size: int = 16, channels: int = 3, width: int = 16) -> Graph:
    """A residual network for images of 8x8 to 32x32 pixels: three stages of one basic block each."""
    nodes: list[Node] = []
    last = _conv_norm(nodes, "stem", IMAGE, width, 3, 1)
    nodes.append(Relu(name="stem_relu", inputs=(last,)))
    last = _block(nodes, "s1b1", "stem_relu", ((width, 3, 1), (width, 3, 1)), project=False)
    for stage in (2, 3):
        wide = width << (stage - 1)
        last = _block(nodes, f"s{stage}b1", last, ((wide, 3, 2), (wide, 3, 1)), project=True)
    return _classified(nodes, last, classes, size, channels)


def _block(nodes: list[Node], name: str, source: str, layers: Sequence[tuple[int, int, int]], project: bool) -> str:
    """A residual block of (channels, kernel, stride) each, with a convolution of kernel 1 beside it if asked for."""
    last = source
    for number, (channels, kernel, stride) in enumerate(layers, start=1):
        if number > 1:
            nodes.append(Relu(name=f"{name}_relu{number - 1}", inputs=(last,)))
            last = nodes[-1].name
        last = _conv_norm(nodes, f"{name}_{number}", last, channels, kernel, stride)
    beside = source
    if project:
        stride = max(stride for _, _, stride in layers)
        beside = _conv_norm(nodes, f"{name}_side", source, layers[-1][0], 1, stride)
    nodes.append(Add(name=f"{name}_add", inputs=(last, beside)))
    nodes.append(Relu(name=f"{name}_relu", inputs=(f"{name}_add",)))
    return nodes[-1].name


def _conv_norm(nodes: list[Node], name: str, source: str, channels: int, kernel: int, stride: int) -> str:
    nodes.append(Convolution(name=f"{name}_conv", inputs=(source,), channels=channels, kernel=kernel, stride=stride))
    nodes.append(BatchNorm(name=f"{name}_norm", inputs=(f"{name}_conv",)))
    return nodes[-1].name


def _classified(nodes: list[Node], last: str, classes: int, size: int, channels: int) -> Graph:
    nodes.append(GlobalAveragePool(name="pool", inputs=(last,)))
    nodes.append(Dense(name="dense", inputs=("pool",), channels=classes))
    return Graph(channels=channels, size=size, nodes=tuple(nodes))
