"""What one image costs a network, counted twice: as torch counts it, and as AIPerf does. A multiply-add is two.

`honest` counts the products of convolutions and dense layers, forward and backward, and nothing else: it equals
torch.utils.flop_counter's count to the digit. MFU and the honest score rest on it.

`compatible` is by the original's formulas, for figures to set beside published ones. Its flaws: batch norm's backward
pass is 36 whatever its size; that of ReLU, sums and pools is nothing; a weight's update is 2 per image, though made
once per batch; concatenation and dropout are free. One flaw is not here: the original took its hyper-parameter
`kernel_size` for the kernel of late convolutions that it did not change, worth up to 30 % of the score.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from proofmark.automl.network.graph import IMAGE, Graph
from proofmark.automl.network.layers import (
    Add,
    BatchNorm,
    Convolution,
    Dense,
    GlobalAveragePool,
    MaxPool,
    Node,
    Relu,
    Shape,
)

_EXPONENTIAL, _DIVISION, _NORM, _NORM_BACKWARD = 8, 4, 7, 36


class Flops(NamedTuple):
    """FLOPs of one image: a forward pass, as for evaluation, and a backward pass with the update of weights."""

    forward: int
    backward: int

    @property
    def training(self) -> int:
        """FLOPs of a training step, per image."""
        return self.forward + self.backward


def honest(graph: Graph) -> Flops:
    """FLOPs of convolutions and dense layers; no gradient is computed for the image."""
    forward = backward = 0
    learned = set[str]()
    for node in graph.nodes:
        needs_gradient = any(name in learned for name in node.inputs)
        if needs_gradient or node.parameters(graph.given(node)):
            learned.add(node.name)
        if isinstance(node, Convolution | Dense):
            products = _products(node, graph)
            forward += products
            backward += products * (2 if needs_gradient else 1)
    return Flops(forward, backward)


def compatible(graph: Graph) -> Flops:
    """FLOPs by AIPerf's formulas, softmax included."""
    layers = compatible_layers(graph)
    classes = graph.classes
    softmax = (_EXPONENTIAL + _DIVISION) * classes + classes - 1
    return Flops(
        sum(each.forward for each in layers.values()) + softmax, sum(each.backward for each in layers.values())
    )


def compatible_layers(graph: Graph) -> Mapping[str, Flops]:
    """FLOPs of each node by AIPerf's formulas."""
    first = next((node.name for node in graph.nodes if isinstance(node, Convolution)), IMAGE)
    return {node.name: _compatible(node, graph, node.name == first) for node in graph.nodes}


def _compatible(node: Node, graph: Graph, first: bool) -> Flops:
    given = graph.given(node)
    if isinstance(node, Convolution | Dense):
        forward = _products(node, graph)
        return Flops(forward, forward * (1 if first else 2) + 2 * node.parameters(given))
    numbers = _numbers(given[0])
    if isinstance(node, BatchNorm):
        return Flops(_NORM * numbers, _NORM_BACKWARD)
    if isinstance(node, Relu | Add):
        return Flops(numbers, 0)
    if isinstance(node, MaxPool):
        return Flops(numbers * node.kernel**2 // node.stride**2, 0)
    if isinstance(node, GlobalAveragePool):
        return Flops(numbers - given[0].channels + _DIVISION * given[0].channels, 0)
    return Flops(0, 0)


def _products(node: Convolution | Dense, graph: Graph) -> int:
    (given,) = graph.given(node)
    kernel = node.kernel if isinstance(node, Convolution) else 1
    return 2 * kernel**2 * given.channels * _numbers(graph.shapes[node.name])


def _numbers(shape: Shape) -> int:
    return shape.channels * (shape.size or 1) ** 2
