from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings

from proofmark.automl.distance import Descriptor, Word, distance_matrix, distances
from proofmark.automl.morphism.grow import grown
from proofmark.automl.morphism.operations import AddSkip, ConcatSkip, Deeper, Wider
from proofmark.automl.network.graph import Graph
from proofmark.automl.network.seeds import bottleneck_network, small_network
from tests.unit.automl.graphs import chances, distance, random_chain, random_graph

SMALL = small_network(size=8, width=4)


def change(one: Word, other: Word) -> float:
    if one[0] != other[0]:
        return 2
    pairs = list(zip(one[1], other[1], strict=True))
    return sum(abs(a - b) / max(a, b) for a, b in pairs if a != b) / max(len(pairs), 1)


def by_the_book(one: Descriptor, other: Descriptor) -> float:
    """The definitions, one number after the other."""
    table = [[float(i + j) for j in range(len(other.layers) + 1)] for i in range(len(one.layers) + 1)]
    for i, a in enumerate(one.layers, start=1):
        for j, b in enumerate(other.layers, start=1):
            moves = (table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + change(a, b))
            table[i][j] = min(moves)
    few, many = sorted((one.skips, other.skips), key=len)
    ways = (zip(few, way, strict=True) for way in itertools.permutations(many, len(few)))
    matched = min(sum(itertools.starmap(skip_change, way)) for way in ways)
    return table[-1][-1] + matched + len(many) - len(few)


def skip_change(one: tuple[int, int, bool], other: tuple[int, int, bool]) -> float:
    if one[2] != other[2]:
        return 1
    far = abs(one[0] - other[0]) + abs(one[1] - other[1])
    return far / max(max(one[0], other[0]) + max(one[1], other[1]), 1)


@settings(max_examples=30, deadline=None)
@given(chances)
def test_it_is_what_the_definitions_say(chance: random.Random) -> None:
    found = [Descriptor.of(random_chain(random_graph(chance), chance, most=2)[1]) for _ in range(3)]
    found = [each for each in found if len(each.skips) <= 6]
    matrix = distances(found, found)
    for (i, one), (j, other) in itertools.product(enumerate(found), repeat=2):
        assert matrix[i, j] == pytest.approx(by_the_book(one, other), abs=1e-9)
    assert np.array_equal(distance_matrix(found), np.triu(matrix, 1) + np.triu(matrix, 1).T)


@settings(max_examples=30, deadline=None)
@given(chances)
def test_only_names_do_not_count(chance: random.Random) -> None:
    graph = random_graph(chance)
    assert distance(graph, renamed(graph)) == 0
    operations, child = random_chain(graph, chance, most=1)
    assert not operations or distance(graph, child) > 0


def renamed(graph: Graph) -> Graph:
    def other(name: str) -> str:
        return name if name == "image" else f"other_{name}"

    changed = [{"name": other(node.name), "inputs": tuple(map(other, node.inputs))} for node in graph.nodes]
    return graph.with_nodes([node.model_copy(update=update) for node, update in zip(graph.nodes, changed, strict=True)])


def test_by_hand() -> None:
    assert distance(SMALL, grown(SMALL, Wider(conv="s2b1_1_conv"))) == pytest.approx(1 / 2 / 3)
    deeper = grown(SMALL, Deeper(after="s3b1_relu"))  # conv, norm, relu and a sum more, behind all others
    assert distance(SMALL, deeper) == 4
    skip = AddSkip(source="s1b1_relu", target="s3b1_2_norm")
    assert 2 < distance(SMALL, grown(SMALL, skip)) < 4
    assert distance(SMALL, small_network(size=8, width=4, classes=20)) == pytest.approx(1 / 2)


def test_a_skip_leads_from_where_it_begins() -> None:
    for skip in (AddSkip, ConcatSkip):
        found = Descriptor.of(grown(SMALL, skip(source="stem_relu", target="s3b1_2_norm"))).skips
        assert any(start == 3 and joined == (skip is ConcatSkip) for start, _, joined in found)


def test_nothing_and_little() -> None:
    assert distance_matrix([]).shape == (0, 0)
    assert distance_matrix([Descriptor.of(SMALL)]).tolist() == [[0.0]]
    assert distances([Descriptor.of(SMALL)], []).shape == (1, 0)
    assert distance(SMALL, bottleneck_network()) > 100
