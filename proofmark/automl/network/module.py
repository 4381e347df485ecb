"""A graph as a module of torch, with its weights by node."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

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
)
from proofmark.errors import StepError
from proofmark.literal import some

Weights = dict[str, Tensor]
"""Parameters and buffers as `node.parameter`; the momentum of an optimiser has the same form."""

_PREFIX = "node_"
"""Before a node's name: so it can be no attribute of modules."""

_SHOWN = 20


class GraphNetwork(nn.Module):
    """Gives logits, (batch, classes), of images, (batch, channels, size, size)."""

    def __init__(self, graph: Graph, weights: Mapping[str, Tensor] | None = None) -> None:
        """Build it around copies of weights; without any it is on the meta device, to look at.

        Raises:
            StepError: they are not this graph's; every problem.
        """
        super().__init__()
        self.graph = graph
        last = {name: node.name for node in graph.nodes for name in node.inputs}
        self._spent = {node.name: {name for name in node.inputs if last[name] == node.name} for node in graph.nodes}
        with torch.device("meta"):
            for node in graph.nodes:
                self.add_module(f"{_PREFIX}{node.name}", _module(node, graph))
        if weights is not None:
            self._take(weights)

    def forward(self, image: Tensor) -> Tensor:
        """See the class."""
        there = {IMAGE: image}
        for node in self.graph.nodes:
            module = self._modules[f"{_PREFIX}{node.name}"]
            assert module is not None
            there[node.name] = module(*(there[name] for name in node.inputs))
            for name in self._spent[node.name]:
                del there[name]
        return there[self.graph.nodes[-1].name]

    def weights(self) -> Weights:
        """The network's own parameters and buffers: not copies, without history."""
        return {name.removeprefix(_PREFIX): tensor.detach() for name, tensor in self.state_dict().items()}

    def by_name(self) -> dict[str, nn.Parameter]:
        """The network's parameters by the names they have in `Weights`."""
        return {name.removeprefix(_PREFIX): parameter for name, parameter in self.named_parameters()}

    def misfits(self, weights: Mapping[str, Tensor], dimensions: int = 4) -> list[str]:
        """Why weights are not this network's: one is missing, of no node, or differs in its first `dimensions`."""
        expected = self.weights()
        problems = [f"{name} is missing" for name in expected if name not in weights]
        problems += [f"{name} is of no node" for name in weights if name not in expected]
        problems += [
            f"{name} is of shape {tuple(weights[name].shape)}; expected {tuple(tensor.shape)}"
            for name, tensor in expected.items()
            if name in weights and weights[name].shape[:dimensions] != tensor.shape[:dimensions]
        ]
        return problems

    def _take(self, weights: Mapping[str, Tensor]) -> None:
        refuse(self.misfits(weights))
        copies = {f"{_PREFIX}{name}": tensor.detach().clone() for name, tensor in weights.items()}
        self.load_state_dict(copies, assign=True)
        for parameter in self.parameters():
            parameter.requires_grad_(True)


def refuse(misfits: Sequence[str]) -> None:
    """Raise an error that names the misfits, if there are any.

    Raises:
        StepError: anything.
    """
    if misfits:
        raise StepError(f"The weights don't fit the graph: {some(misfits, _SHOWN, '; ')}.")


def fresh_weights(graph: Graph, seed: int) -> Weights:
    """Weights to begin with: He et al. 2015 for convolutions, small numbers for dense layers.

    A node's follow from the seed and its name alone.
    """
    weights: Weights = {}
    for name, empty in GraphNetwork(graph).weights().items():
        node, _, kind = name.rpartition(".")
        weights[name] = fresh_tensor(graph.by_name[node], kind, empty, seed)
    return weights


def fresh_tensor(node: Node, kind: str, like: Tensor, seed: int) -> Tensor:
    """A fresh tensor of a node, with the shape and type of `like`."""
    if isinstance(node, BatchNorm):
        start = torch.ones if kind in ("weight", "running_var") else torch.zeros
        return start(like.shape, dtype=like.dtype)
    if kind == "bias":
        return torch.zeros(like.shape, dtype=like.dtype)
    fan_out = like.shape[0] * (node.kernel**2 if isinstance(node, Convolution) else 1)
    deviation = (2 / fan_out) ** 0.5 if isinstance(node, Convolution) else 0.01
    numbers = int.from_bytes(hashlib.sha256(f"{seed} {node.name}".encode()).digest()[:8])
    generator = torch.Generator().manual_seed(numbers >> 1)
    return torch.randn(like.shape, generator=generator, dtype=torch.float64).mul_(deviation).to(like.dtype)


def momentum_of(network: GraphNetwork, optimiser: torch.optim.Optimizer) -> Weights:
    """A copy of what SGD has gathered for each parameter, not on its device; nothing before its first step."""
    found = {name: optimiser.state[parameter] for name, parameter in network.by_name().items()}
    kept = {name: state.get("momentum_buffer") for name, state in found.items()}
    return {name: buffer.detach().to("cpu", copy=True) for name, buffer in kept.items() if buffer is not None}


def set_momentum(network: GraphNetwork, optimiser: torch.optim.Optimizer, momentum: Mapping[str, Tensor]) -> None:
    """Have SGD continue with this momentum.

    Raises:
        StepError: it is of a parameter that the network has not.
    """
    parameters = network.by_name()
    for name, buffer in momentum.items():
        if name not in parameters or parameters[name].shape != buffer.shape:
            raise StepError(f"The momentum of {name} doesn't fit the network.")
        parameter = parameters[name]
        optimiser.state[parameter]["momentum_buffer"] = buffer.detach().clone().to(parameter)


class _Sum(nn.Module):
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return left + right


class _Joined(nn.Module):
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return torch.cat((left, right), dim=1)


class _Mean(nn.Module):
    def forward(self, image: Tensor) -> Tensor:
        return image.mean((2, 3))


def _module(node: Node, graph: Graph) -> nn.Module:
    given = graph.given(node)[0].channels
    if isinstance(node, Convolution):
        half = node.kernel // 2
        return nn.Conv2d(given, node.channels, node.kernel, node.stride, half, bias=False)
    if isinstance(node, MaxPool):
        return nn.MaxPool2d(node.kernel, node.stride, node.kernel // 2)
    if isinstance(node, Dense):
        return nn.Linear(given, node.channels)
    if isinstance(node, BatchNorm):
        return nn.BatchNorm2d(given)
    if isinstance(node, Dropout):
        return nn.Dropout(node.rate)
    plain = {Add: _Sum, Concat: _Joined, GlobalAveragePool: _Mean}
    return plain.get(type(node), nn.ReLU)()
