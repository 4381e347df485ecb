from __future__ import annotations

import random
import tempfile
from pathlib import Path

import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from proofmark.automl.morphism.inherit import inherit
from proofmark.automl.morphism.operations import AddSkip, ConcatSkip, Deeper, Operation, Wider
from proofmark.automl.network.graph import Graph
from proofmark.automl.network.module import GraphNetwork, fresh_weights, momentum_of, set_momentum
from proofmark.automl.network.seeds import bottleneck_network, small_network
from proofmark.errors import StepError
from proofmark.inference.steps.export import export_onnx
from tests.unit.automl.graphs import random_chain, random_graph

SMALL = small_network(size=8, width=4)


def test_parameters_are_those_of_the_graph() -> None:
    for graph in (SMALL, bottleneck_network(size=32)):
        network = GraphNetwork(graph)
        assert sum(parameter.numel() for parameter in network.parameters()) == graph.parameters
        assert {name.partition(".")[0] for name in network.weights()} <= set(graph.by_name)


def test_weights_there_and_back() -> None:
    weights = fresh_weights(SMALL, 0)
    network = GraphNetwork(SMALL, weights)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in network.weights().items())
    with torch.no_grad():
        network.by_name()["dense.bias"].add_(1)
    assert not weights["dense.bias"].any(), "the weights are copied"


def test_fresh_weights_follow_from_seed_and_name() -> None:
    one, wide = fresh_weights(SMALL, 5), fresh_weights(small_network(size=8, width=4, classes=3), 5)
    assert torch.equal(one["stem_conv.weight"], wide["stem_conv.weight"])
    assert not torch.equal(one["stem_conv.weight"], fresh_weights(SMALL, 6)["stem_conv.weight"])


def test_every_misfit_is_told() -> None:
    weights = fresh_weights(SMALL, 0)
    del weights["dense.bias"]
    weights["ghost.weight"] = torch.zeros(1)
    weights["stem_conv.weight"] = torch.zeros(2, 2)
    with pytest.raises(StepError) as error:
        GraphNetwork(SMALL, weights)
    for part in ("dense.bias is missing", "ghost.weight is of no node", r"shape (2, 2); expected (4, 3, 3, 3)"):
        assert part in str(error.value)


def test_momentum_must_fit() -> None:
    network = GraphNetwork(SMALL, fresh_weights(SMALL, 0))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    assert momentum_of(network, optimiser) == {}
    with pytest.raises(StepError, match=r"The momentum of ghost\.weight"):
        set_momentum(network, optimiser, {"ghost.weight": torch.zeros(1)})


def test_torch_may_give_up_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wordless(*_given: object, **_named: object) -> None:
        raise AssertionError

    monkeypatch.setattr(torch.onnx, "export", wordless)
    with pytest.raises(StepError, match="torch cannot export the model: AssertionError"):
        export_onnx(torch.nn.ReLU(), [torch.zeros(2, 1)], tmp_path / "model.onnx", ["input"], ["output"])


@settings(max_examples=4)
@given(st.randoms(use_true_random=False))
def test_what_chains_of_operations_make_exports_to_onnx_and_is_checked(chance: random.Random) -> None:
    graph = random_graph(chance)
    operations, _ = random_chain(graph, chance)
    exports(graph, operations, chance.randrange(1000))


def test_each_operation_exports_to_onnx_and_is_checked() -> None:
    operations = [
        Wider(conv="s1b1_2_conv"),
        Deeper(after="s1b1_relu1"),
        AddSkip(source="stem_relu", target="s3b1_2_norm"),
        ConcatSkip(source="stem_relu", target="s2b1_2_norm"),
    ]
    exports(SMALL, operations, 0)


def exports(graph: Graph, operations: list[Operation], seed: int) -> None:
    """What operations make of a graph is computed by another engine as by torch; the inference suite's own check of an
    exported graph is part of its export."""
    child = inherit(graph, operations, fresh_weights(graph, seed))
    network = GraphNetwork(child.graph, child.weights).eval()
    generator = torch.Generator().manual_seed(seed)
    batch = torch.randn(3, graph.channels, graph.size, graph.size, generator=generator)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "child.onnx"
        export_onnx(network, [batch], path, ["input"], ["logits"])
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input": batch.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), network(batch).detach(), rtol=1e-4, atol=1e-5)
