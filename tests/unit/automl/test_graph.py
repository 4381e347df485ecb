from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from proofmark.automl.network.graph import Graph, parse_graph, read_graph
from proofmark.automl.network.layers import Shape
from proofmark.automl.network.seeds import bottleneck_network, small_network
from proofmark.errors import ConfigurationError
from tests.fuzz.inputs import damaged

SMALL = small_network(size=8, width=4)
VALUE = SMALL.model_dump(mode="json")


def of(*nodes: dict[str, Any], channels: int = 3, size: int = 8) -> dict[str, Any]:
    return {"channels": channels, "size": size, "nodes": list(nodes)}


def node(name: str, op: str, *inputs: str, **rest: Any) -> dict[str, Any]:
    return {"name": name, "op": op, "inputs": list(inputs), **rest}


END = (node("pool", "global_average_pool", "image"), node("dense", "dense", "pool", channels=10))


def problems(value: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as error:
        parse_graph(value, "graph.json")
    return [str(problem) for problem in error.value.problems]


def test_the_large_seed_is_resnet_50() -> None:
    graph = bottleneck_network()
    layers = Counter(each.op for each in graph.nodes)
    assert layers == Counter(conv=53, batch_norm=53, relu=49, add=16, max_pool=1, global_average_pool=1, dense=1)
    assert graph.parameters == 25_557_032
    assert graph.shapes["stem_pool"] == Shape(64, 56)
    assert graph.shapes["pool"] == Shape(2048, None)
    assert graph.classes == 1000


@pytest.mark.parametrize("size", [8, 16, 17, 32])
def test_the_small_seed_takes_small_images(size: int) -> None:
    graph = small_network(size=size, classes=7, channels=1)
    assert graph.classes == 7
    assert graph.shapes["s3b1_relu"] == Shape(64, -(-size // 4))


def test_there_and_back() -> None:
    again = parse_graph(json.loads(SMALL.model_dump_json()), "x")
    assert again == SMALL and again.model_dump_json() == SMALL.model_dump_json()


def test_it_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        SMALL.size = 9  # type: ignore[misc]


def test_consumers_are_the_inverse_of_inputs() -> None:
    edges = {(name, each.name) for each in SMALL.nodes for name in each.inputs}
    assert edges == {(name, each.name) for name, found in SMALL.consumers.items() for each in found}


def test_all_problems_at_once() -> None:
    value = of(
        node("a", "conv", "image", channels=4, kernel=4),
        node("a", "relu", "image"),
        node("b", "relu", "c"),
        node("d", "dense", "image", channels=3),
        node("e", "conv", "image", channels=4, kernel=1, stride=2),
        node("f", "add", "e", "image"),
        node("g", "concat", "e", "image"),
        node("h", "add", "e"),
    )
    assert problems(value) == [
        "graph.json: node a: has a kernel of 4; expected an odd number",
        "graph.json: node a: another node has this name",
        "graph.json: node b: takes from c, which is not an earlier node",
        "graph.json: node d: takes a vector, is given (3, 8, 8)",
        "graph.json: node f: adds (4, 4, 4) to (3, 8, 8); expected two of one shape",
        "graph.json: node g: joins (4, 4, 4) and (3, 8, 8); expected images of one size",
        "graph.json: node h: takes 2 inputs, has 1",
    ]


def test_what_is_wrong_with_single_fields() -> None:
    found = problems(of(node("A", "conv", "image", channels=0, kernel=True), node("b", "tanh", "A"), size="8"))
    assert len(found) == 6
    assert all(any(part in line for line in found) for part in ("size", "nodes.0.conv.name", "channels", "nodes.1"))


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ((node("r", "relu", "image"), *END), "node r: nothing takes what it gives"),
        ((node("r", "relu", "image"),), "node r: it is the last and a relu; expected a dense"),
        ((node("c", "conv", "c", channels=1, kernel=1), *END), "node c: takes from c, which is not an earlier node"),
        ((node("image", "relu", "image"), *END), "node image: another node has this name"),
        ((*END, node("n", "batch_norm", "dense"), node("d", "dense", "n", channels=2)), "node n: takes images"),
    ],
)
def test_what_is_no_network(nodes: tuple[dict[str, Any], ...], says: str) -> None:
    assert any(says in line for line in problems(of(*nodes)))


def test_what_is_too_large() -> None:
    wide = [node("c0", "conv", "image", channels=32768, kernel=1)]
    wide += [node("c1", "conv", "c0", channels=32768, kernel=1), node("j", "concat", "c0", "c1")]
    wide += [node("pool", "global_average_pool", "j"), node("dense", "dense", "pool", channels=10)]
    assert problems(of(*wide, size=512)) == [
        "graph.json: a tensor has 65536 channels; at most 32768 are allowed",
        "graph.json: 1074495498 parameters; at most 1073741824 are allowed",
        "graph.json: 34360590346 activations per image; at most 1073741824 are allowed",
    ]
    chain = [node("r0", "relu", "image"), *(node(f"r{i}", "relu", f"r{i - 1}") for i in range(1, 1000))]
    assert "1000 items" in problems(of(*chain, *END))[0]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(SMALL.model_dump_json())
    assert read_graph(path) == SMALL
    for content in (b"{", b"\xff", b"[" * 5000, b"null", b'{"nodes": NaN}'):
        path.write_bytes(content)
        with pytest.raises(ConfigurationError, match=r"graph.json"):
            read_graph(path)
    with pytest.raises(ConfigurationError, match="No such file"):
        read_graph(tmp_path / "absent.json")


@settings(max_examples=300, deadline=None)
@given(damaged(VALUE))
def test_whatever_is_read_is_whole_or_refused(value: Any) -> None:
    try:
        graph = parse_graph(value, "x")
    except ConfigurationError as error:
        found = error.problems
        assert found and all(problem.what for problem in found)
    else:
        assert Graph.model_validate_json(graph.model_dump_json()) == graph
        assert set(graph.shapes) == {"image", *(each.name for each in graph.nodes)}
