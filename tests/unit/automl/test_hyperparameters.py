from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from pydantic import ValidationError

from proofmark.automl.morphism.inherit import resized
from proofmark.automl.network.flops import honest
from proofmark.automl.network.hyperparameters import with_dropout, with_kernel
from proofmark.automl.network.layers import Convolution, Dropout
from proofmark.automl.network.module import GraphNetwork, fresh_weights
from proofmark.automl.network.seeds import small_network
from tests.unit.automl.graphs import chances, random_graph

SMALL = small_network(size=8, width=4)


def test_dropout_comes_before_the_last_layer_and_goes_again() -> None:
    dropped = with_dropout(SMALL, 0.25)
    assert [node.op for node in dropped.nodes[-3:]] == ["global_average_pool", "dropout", "dense"]
    assert with_dropout(dropped, 0.5).by_name["dropout"] == Dropout(name="dropout", inputs=("pool",), rate=0.5)
    assert with_dropout(dropped, 0) == SMALL
    assert with_dropout(SMALL, 0) == SMALL
    with pytest.raises(ValidationError):
        with_dropout(SMALL, 1.5)


@settings(max_examples=20, deadline=None)
@given(chances)
def test_dropout_of_any_network(chance: random.Random) -> None:
    graph = random_graph(chance, dropout=chance.choice((0.0, 0.3)))
    changed = with_dropout(graph, 0.1)
    assert sum(isinstance(node, Dropout) and node.rate == 0.1 for node in changed.nodes) == 1
    assert with_dropout(with_dropout(changed, 0), 0.1).parameters == graph.parameters


def test_a_kernel_really_changes_the_network() -> None:
    large = with_kernel(SMALL, 5)
    kernels = {node.name: node.kernel for node in large.nodes if isinstance(node, Convolution)}
    assert kernels.pop("stem_conv") == 3
    assert {kernel for name, kernel in kernels.items() if "side" in name} == {1}
    assert {kernel for name, kernel in kernels.items() if "side" not in name} == {5}
    assert honest(large).training > 2 * honest(SMALL).training
    assert with_kernel(large, 3) == SMALL
    for wrong in (4, 17, 0):
        with pytest.raises(ValidationError):
            with_kernel(SMALL, wrong)


def test_larger_kernels_preserve_the_function() -> None:
    weights = {name: tensor.double() for name, tensor in fresh_weights(SMALL, 0).items()}
    large = with_kernel(SMALL, 7)
    batch = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    found = GraphNetwork(large, resized(large, weights))(batch)
    torch.testing.assert_close(found, GraphNetwork(SMALL, weights)(batch), rtol=1e-9, atol=1e-12)
    again = resized(SMALL, resized(large, weights))
    assert all(torch.equal(again[name], weights[name]) for name in weights)
