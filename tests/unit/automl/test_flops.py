from __future__ import annotations

import random
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from torch.utils.flop_counter import FlopCounterMode

from proofmark.automl.network.flops import Flops, compatible, compatible_layers, honest
from proofmark.automl.network.graph import Graph
from proofmark.automl.network.module import GraphNetwork
from proofmark.automl.network.seeds import bottleneck_network, small_network
from tests.unit.automl.graphs import chances, random_chain, random_graph

BATCH = 2


def by_torch(graph: Graph) -> Flops:
    network = GraphNetwork(graph)  # on the meta device: nothing is computed
    with FlopCounterMode(display=False) as counter:
        logits = network(torch.empty(BATCH, graph.channels, graph.size, graph.size, device="meta"))
        forward = counter.get_total_flops()
        logits.sum().backward()
    return Flops(forward // BATCH, (counter.get_total_flops() - forward) // BATCH)


def test_golden_numbers_of_resnet_50() -> None:
    graph = bottleneck_network()
    count = compatible(graph)
    assert (count.forward, count.training) == (7_806_583_495, 23_053_458_315)
    kinds: Counter[str] = Counter()
    for name, each in compatible_layers(graph).items():
        kinds[graph.by_name[name].op] += each.forward
        kinds[f"{graph.by_name[name].op} back"] += each.backward
    assert kinds["conv"] == 7_711_850_496 and kinds["conv back"] == 15_234_582_912
    assert kinds["batch_norm"] == 74_109_952 and kinds["batch_norm back"] == 1_908
    assert kinds["dense"] == 4_096_000 and kinds["dense back"] == 12_290_000


def test_the_bridge_between_the_two_counts_of_resnet_50() -> None:
    graph = bottleneck_network()
    count = honest(graph)
    assert (count.forward, count.training) == (7_715_946_496, 22_911_811_584)
    assert by_torch(graph) == count
    updates, norms, rest = 46_909_824 + 4_098_000, 74_109_952 + 1_908, 16_527_047
    assert compatible(graph).training == count.training + updates + norms + rest


@pytest.mark.parametrize("size", [8, 17])
def test_the_small_seed_is_counted_as_torch_counts_it(size: int) -> None:
    graph = small_network(size=size)
    assert honest(graph) == by_torch(graph)


@settings(max_examples=25, deadline=None)
@given(chances)
def test_any_graph_is_counted_as_torch_counts_it(chance: random.Random) -> None:
    _, graph = random_chain(random_graph(chance), chance, most=3)
    assert honest(graph) == by_torch(graph)
