from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from pydantic import TypeAdapter
from torch import Tensor
from torch.nn.functional import cross_entropy

from proofmark.automl.morphism import inherit as inheriting
from proofmark.automl.morphism.grow import KINDS, grown, random_growth
from proofmark.automl.morphism.inherit import inherit
from proofmark.automl.morphism.operations import AddSkip, ConcatSkip, Deeper, IllegalOperation, Operation, Wider
from proofmark.automl.network.flops import honest
from proofmark.automl.network.graph import Graph
from proofmark.automl.network.layers import BatchNorm, Convolution
from proofmark.automl.network.module import GraphNetwork, Weights, fresh_weights, momentum_of, set_momentum
from proofmark.automl.network.seeds import bottleneck_network, small_network
from proofmark.errors import StepError
from tests.unit.automl.graphs import chances, random_chain, random_graph

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = small_network(size=8, width=4)
EVERY = [
    Deeper(after="s1b1_relu1"),
    Deeper(after="s3b1_relu"),
    Wider(conv="s2b1_1_conv"),
    Wider(conv="s1b1_2_conv"),
    AddSkip(source="stem_relu", target="s3b1_2_norm"),
    AddSkip(source="s1b1_relu1", target="s1b1_2_norm"),
    ConcatSkip(source="stem_relu", target="s2b1_2_norm"),
    ConcatSkip(source="s1b1_relu1", target="s1b1_2_norm"),
]


def trained_like(graph: Graph, seed: int, dtype: torch.dtype = torch.float64) -> Weights:
    """Weights with nothing at its initial value: statistics, scales and shifts of batch norms included."""
    weights = fresh_weights(graph, seed)
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in weights.items():
        if name.endswith(".bias"):
            weights[name] = torch.rand(tensor.shape, generator=generator) * 0.5
        if isinstance(graph.by_name[name.partition(".")[0]], BatchNorm) and tensor.is_floating_point():
            positive = name.endswith(("weight", "running_var"))
            weights[name] = torch.rand(tensor.shape, generator=generator) * 0.5 + (0.75 if positive else -0.25)
    return {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in weights.items()}


def images(graph: Graph, seed: int, dtype: torch.dtype = torch.float64, items: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(items, graph.channels, graph.size, graph.size, generator=generator).to(dtype)


def computed(graph: Graph, weights: Mapping[str, Tensor], batch: Tensor, training: bool) -> Tensor:
    network = GraphNetwork(graph, weights).train(training)
    with torch.no_grad():
        return network(batch)


def deviation(
    graph: Graph, operations: list[Operation], seed: int, training: bool, dtype: torch.dtype = torch.float64
) -> float:
    """Largest difference between child and parent, relative to the parent's largest logit."""
    weights = trained_like(graph, seed, dtype)
    before = {name: tensor.clone() for name, tensor in weights.items()}
    batch = images(graph, seed, dtype)
    expected = computed(graph, weights, batch, training)
    child = inherit(graph, operations, weights, seed=seed)
    found = computed(child.graph, child.weights, batch, training)
    assert all(torch.equal(before[name], weights[name]) for name in before), "the parent was changed"
    assert child.graph == grown(graph, *operations)
    return float((found - expected).abs().max() / expected.abs().max())


@settings(max_examples=25, deadline=None)
@given(chances)
def test_chains_preserve_the_function(chance: random.Random) -> None:
    graph = random_graph(chance)
    operations, _ = random_chain(graph, chance)
    seed = chance.randrange(1000)
    for training in (False, True):
        assert deviation(graph, operations, seed, training) < 1e-9
        assert deviation(graph, operations, seed, training, torch.float32) < 1e-4


@settings(max_examples=25, deadline=None)
@given(chances)
def test_zero_type_constructions_are_exact_to_the_bit(chance: random.Random) -> None:
    graph, operations = random_graph(chance), []
    child = graph
    for _ in range(8):
        if step := random_growth(child, chance, (Deeper, AddSkip, ConcatSkip)):
            operations.append(step[0])
            child = step[1]
    for training in (False, True):
        assert deviation(graph, operations, 2, training, torch.float32) == 0


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("operation", EVERY, ids=str)
def test_each_on_the_small_seed(operation: Operation, training: bool) -> None:
    found = deviation(SMALL, [operation], 3, training, torch.float32)
    assert found < 1e-4 if isinstance(operation, Wider) else found == 0


def spoiled_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inheriting, "_once", inheriting._again)  # filters twice, and what takes from them undivided


def spoiled_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "zero_", lambda tensor: tensor)


def spoiled_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.init, "dirac_", lambda tensor: tensor)


@pytest.mark.parametrize(
    ("spoil", "operation"),
    [
        (spoiled_wider, EVERY[2]),
        (spoiled_wider, EVERY[3]),
        (spoiled_scale, EVERY[0]),
        (spoiled_scale, EVERY[4]),
        (spoiled_identity, EVERY[6]),
    ],
)
def test_a_wrong_construction_is_seen(
    monkeypatch: pytest.MonkeyPatch, spoil: Callable[[pytest.MonkeyPatch], None], operation: Operation
) -> None:
    """In evaluation: while training, a batch norm takes back what is twice too much."""
    spoil(monkeypatch)
    assert deviation(SMALL, [operation], 3, training=False) > 1e-3


def test_statistics_go_on_as_the_parents() -> None:
    weights, batch = trained_like(SMALL, 5), images(SMALL, 5)
    parent = GraphNetwork(SMALL, weights).train()
    child = inherit(SMALL, [EVERY[0], EVERY[2], EVERY[4], EVERY[6]], weights)
    network = GraphNetwork(child.graph, child.weights).train()
    parent(batch), network(batch)
    torch.testing.assert_close(network.weights()["stem_norm.running_var"], parent.weights()["stem_norm.running_var"])


@pytest.mark.parametrize("operation", EVERY, ids=str)
def test_gradients_reach_every_new_tensor_within_two_steps(operation: Operation) -> None:
    weights = trained_like(SMALL, 7)
    child = inherit(SMALL, [operation], weights, seed=7)
    network = GraphNetwork(child.graph, child.weights).train()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    seen = {name: torch.zeros_like(tensor, dtype=torch.bool) for name, tensor in network.by_name().items()}
    for step in range(2):
        optimiser.zero_grad()
        cross_entropy(network(images(SMALL, step, items=16)), torch.arange(16) % 10).backward()
        for name, tensor in network.by_name().items():
            assert tensor.grad is not None
            seen[name] |= tensor.grad != 0
        optimiser.step()
    for name, mask in seen.items():
        new = mask if name not in weights else mask[weights[name].shape[0] :]
        assert new.numel() == 0 or new.any(), name
        if isinstance(operation, Wider) and name in weights and mask.dim() == 4:
            assert mask.flatten(2).any(2).all(), name  # each pair of an input and a filter, the new ones too


@settings(max_examples=15, deadline=None)
@given(chances)
def test_the_optimiser_goes_on(chance: random.Random) -> None:
    """One step of the child with the momentum it was given changes the old weights as one step of the parent does."""
    graph = random_graph(chance)
    weights = trained_like(graph, 11)
    parent, optimiser = stepping(graph, weights)
    step(parent, optimiser)
    drawn = random_growth(graph, chance, [kind for kind in KINDS if kind is not Wider], attempts=1000)
    assert drawn is not None
    operation, _ = drawn
    child = inherit(graph, [operation], parent.weights(), momentum_of(parent, optimiser))
    assert set(child.momentum) == set(GraphNetwork(child.graph).by_name())
    network, its = stepping(child.graph, child.weights)
    set_momentum(network, its, child.momentum)
    step(parent, optimiser)
    step(network, its)
    for name, tensor in parent.by_name().items():
        torch.testing.assert_close(network.by_name()[name], tensor, rtol=1e-9, atol=1e-12)


def test_momentum_of_wider_is_the_parents_and_zero() -> None:
    parent, optimiser = stepping(SMALL, trained_like(SMALL, 13))
    step(parent, optimiser)
    momentum = momentum_of(parent, optimiser)
    child = inherit(SMALL, [Wider(conv="s2b1_1_conv")], parent.weights(), momentum)
    for name in ("s2b1_1_conv.weight", "s2b1_1_norm.weight", "s2b1_1_norm.bias"):
        assert torch.equal(child.momentum[name][::2], momentum[name])
        assert not child.momentum[name][1::2].any()
    assert torch.equal(child.momentum["s2b1_2_conv.weight"][:, ::2], momentum["s2b1_2_conv.weight"])
    assert not child.momentum["s2b1_2_conv.weight"][:, 1::2].any()
    assert {name: t.shape for name, t in child.momentum.items()} == {
        name: t.shape for name, t in GraphNetwork(child.graph).by_name().items()
    }


def stepping(graph: Graph, weights: Weights) -> tuple[GraphNetwork, torch.optim.SGD]:
    network = GraphNetwork(graph, weights).train()
    return network, torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)


def step(network: GraphNetwork, optimiser: torch.optim.SGD) -> None:
    optimiser.zero_grad()
    cross_entropy(network(images(network.graph, 1)), torch.arange(4) % network.graph.classes).backward()
    optimiser.step()


@settings(max_examples=40, deadline=None)
@given(chances)
def test_shapes_parameters_and_flops_change_by_the_closed_form(chance: random.Random) -> None:
    graph = random_graph(chance)
    found = random_growth(graph, chance)
    assume(found is not None)
    assert found is not None
    operation, child = found
    parameters, products = closed_form(graph, operation)
    assert child.parameters - graph.parameters == parameters
    assert honest(child).forward - honest(graph).forward == 2 * products
    assert child.classes == graph.classes
    if not isinstance(operation, Wider):
        assert {name: child.shapes[name] for name in graph.shapes} == graph.shapes


def closed_form(graph: Graph, operation: Operation) -> tuple[int, int]:
    """Parameters and multiply-adds more."""
    if isinstance(operation, Wider):
        return wider_by_closed_form(graph, grown(graph, operation))
    if isinstance(operation, Deeper):
        channels, size = graph.shapes[operation.after]
        return 9 * channels**2 + 2 * channels, 9 * channels**2 * (size or 1) ** 2
    given, (channels, size) = graph.shapes[operation.source].channels, graph.shapes[operation.target]
    if isinstance(operation, AddSkip):
        return given * channels + 2 * channels, given * channels * (size or 1) ** 2
    return (given + channels) * channels, (given + channels) * channels * (size or 1) ** 2


def wider_by_closed_form(graph: Graph, child: Graph) -> tuple[int, int]:
    parameters = products = 0
    for node in graph.nodes:
        old, new = graph.shapes[node.name].channels, child.shapes[node.name].channels
        was, now = graph.given(node)[0].channels, child.given(child.by_name[node.name])[0].channels
        area = (graph.shapes[node.name].size or 1) ** 2
        if isinstance(node, BatchNorm):
            parameters += 2 * (new - old)
        elif node.op in ("conv", "dense"):
            kernel = node.kernel**2 if isinstance(node, Convolution) else 1
            parameters += kernel * (new * now - old * was)
            products += kernel * (new * now - old * was) * area
    return parameters, products


def test_wider_by_hand() -> None:
    inner = grown(SMALL, Wider(conv="s2b1_1_conv"))  # 4 -> 8 -> 8 becomes 4 -> 16 -> 8
    assert inner.parameters - SMALL.parameters == 9 * 4 * 8 + 2 * 8 + 9 * 8 * 8
    group = grown(SMALL, Wider(conv="s1b1_2_conv"))  # added to the stem's, which is widened too
    assert {name for name, shape in group.shapes.items() if shape != SMALL.shapes[name]} == {
        *("stem_conv", "stem_norm", "stem_relu", "s1b1_2_conv", "s1b1_2_norm", "s1b1_add", "s1b1_relu"),
    }


def test_wider_goes_through_concatenations() -> None:
    joined = grown(SMALL, ConcatSkip(source="stem_relu", target="s1b1_1_norm"))
    wide = grown(joined, Wider(conv="s1b1_1_conv"))
    assert joined.shapes["m1_concat"].channels == 8
    assert wide.shapes["m1_concat"].channels == 12
    assert wide.shapes["m1_conv"].channels == 4


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        (Deeper(after="nobody"), "there is no node nobody"),
        (Deeper(after="stem_conv"), "node stem_conv is a conv; expected a relu"),
        (Wider(conv="dense"), "node dense is a dense; expected a conv"),
        (AddSkip(source="s3b1_relu", target="stem_norm"), "node s3b1_relu comes after stem_norm; a skip leads forward"),
        (AddSkip(source="stem_norm", target="stem_norm"), "node stem_norm is a batch_norm; expected a relu"),
        (ConcatSkip(source="stem_relu", target="pool"), "node pool is a global_average_pool; expected a batch_norm"),
        (AddSkip(source="stem_relu", target="s1b1_2_norm"), "there is a skip from stem_relu to s1b1_2_norm already"),
    ],
)
def test_illegal_operations_are_refused(operation: Operation, says: str) -> None:
    with pytest.raises(IllegalOperation, match=f"^{says}$"):
        grown(SMALL, operation)


@pytest.mark.parametrize("joint", [AddSkip, ConcatSkip])
def test_no_skip_is_there_twice(joint: type[AddSkip] | type[ConcatSkip]) -> None:
    skip = joint(source="stem_relu", target="s3b1_1_norm")
    other = joint(source="s1b1_relu", target="s3b1_1_norm")
    with pytest.raises(IllegalOperation, match="already"):
        grown(SMALL, skip, other, skip)


def test_what_grows_too_large_is_refused() -> None:
    graph = bottleneck_network(size=32)
    with pytest.raises(IllegalOperation, match="the graph would not be legal: a tensor has 65536 .*; .* parameters"):
        grown(graph, *[Wider(conv="s4b1_3_conv"), Wider(conv="s4b1_2_conv"), Wider(conv="s4b1_1_conv")] * 5)


def test_an_image_is_not_widened() -> None:
    value = SMALL.model_dump()
    value["channels"] = 4
    stem = next(node for node in value["nodes"] if node["name"] == "s1b1_add")
    stem["inputs"] = ("s1b1_2_norm", "image")
    first = next(node for node in value["nodes"] if node["name"] == "s2b1_side_conv")
    first["inputs"] = ("stem_relu",)
    graph = Graph.model_validate(value)
    with pytest.raises(IllegalOperation, match="added to what image gives, which stays as it is"):
        grown(graph, Wider(conv="s1b1_2_conv"))


@settings(max_examples=25, deadline=None)
@given(chances)
def test_operations_are_json_and_replay(chance: random.Random) -> None:
    graph = random_graph(chance)
    operations, child = random_chain(graph, chance)
    adapter: TypeAdapter[Any] = TypeAdapter(list[Operation])
    again = adapter.validate_json(adapter.dump_json(operations))
    assert again == operations
    assert grown(graph, *again) == child


def test_weights_and_momentum_of_another_graph_are_refused() -> None:
    weights = fresh_weights(SMALL, 1)
    ghost = {"ghost.weight": torch.zeros(1), "stem_conv.weight": torch.zeros(2)}
    with pytest.raises(StepError, match=r"dense.bias is missing; a momentum of ghost.weight; a momentum of stem_conv"):
        inherit(SMALL, EVERY[:1], {name: each for name, each in weights.items() if name != "dense.bias"}, ghost)


def test_the_same_seed_gives_the_same_weights() -> None:
    weights = fresh_weights(SMALL, 1)
    one, same, other = (inherit(SMALL, EVERY[:1], weights, seed=seed).weights for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["m1_conv.weight"], other["m1_conv.weight"])
