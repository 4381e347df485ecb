"""A given ONNX file is held to the case's batch by what it declares, before anything is trained or measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import TensorProto

from proofmark.errors import StepError
from proofmark.inference.steps.given_onnx import check_fits

IMAGE = torch.zeros(4, 3, 8, 8)
TOKENS = torch.zeros(4, 16, dtype=torch.int64)
DECLARED = {"image": (TensorProto.FLOAT, ["n", 3, 8, 8]), "tokens": (TensorProto.INT64, ["n", 16])}


def written(
    path: Path, inputs: dict[str, Any], outputs: int = 1, constants: tuple[str, ...] = (), without_shape: bool = False
) -> Path:
    """A file whose graph declares these inputs and this many outputs."""
    values = [
        onnx.helper.make_tensor_value_info(name, kind, None if without_shape else shape)
        for name, (kind, shape) in inputs.items()
    ]
    names = [f"answer{number}" for number in range(outputs)]
    nodes = [onnx.helper.make_node("Cast", [next(iter(inputs))], [name], to=1) for name in names]
    answers = [onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    weights = [onnx.helper.make_tensor(name, TensorProto.FLOAT, [1], [0.0]) for name in constants]
    graph = onnx.helper.make_graph(nodes, "g", values, answers, weights)
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())
    return path


def fits(path: Path, *inputs: torch.Tensor, outputs: tuple[str, ...] = ("logits",)) -> None:
    check_fits(path, inputs, outputs)


@pytest.mark.parametrize(
    "image",
    [
        (TensorProto.FLOAT, ["n", 3, 8, 8]),
        (TensorProto.FLOAT, ["n", "c", None, 8]),
        (TensorProto.FLOAT, [32, 3, 8, 8]),
        (TensorProto.FLOAT16, ["n", 3, 8, 8]),
        (TensorProto.BFLOAT16, ["n", 3, 8, 8]),
    ],
)
def test_what_an_engine_may_see_to_is_left_to_it(tmp_path: Path, image: Any) -> None:
    fits(written(tmp_path / "m.onnx", {"image": image, "tokens": DECLARED["tokens"]}, 2), IMAGE, TOKENS)


def test_weights_that_are_listed_among_the_inputs_are_none(tmp_path: Path) -> None:
    old = {"image": DECLARED["image"], "w": (TensorProto.FLOAT, [1])}
    fits(written(tmp_path / "m.onnx", old, constants=("w",)), IMAGE)


def test_a_shape_that_is_not_declared_is_any(tmp_path: Path) -> None:
    fits(written(tmp_path / "m.onnx", {"image": DECLARED["image"]}, without_shape=True), IMAGE)


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"image": DECLARED["image"]}, "takes 1 inputs; the case's are a list of 2"),
        (
            {"image": (TensorProto.FLOAT, ["n", 3, 9, 8]), "tokens": DECLARED["tokens"]},
            "input image is (any, 3, 9, 8); the case's is a tensor (4, 3, 8, 8)",
        ),
        (
            {"image": (TensorProto.FLOAT, ["n", 3, 8]), "tokens": DECLARED["tokens"]},
            "input image is (any, 3, 8); the case's is a tensor (4, 3, 8, 8)",
        ),
        (
            {"image": DECLARED["image"], "tokens": (TensorProto.FLOAT, ["n", 16])},
            "input tokens takes floating-point numbers; the case's are otherwise",
        ),
        (
            {"image": (TensorProto.UINT8, ["n", 3, 8, 8]), "tokens": DECLARED["tokens"]},
            "input image takes whole numbers; the case's are otherwise",
        ),
    ],
)
def test_inputs_that_cannot_be_the_cases(tmp_path: Path, inputs: dict[str, Any], told: str) -> None:
    with pytest.raises(StepError) as raised:
        fits(written(tmp_path / "m.onnx", inputs), IMAGE, TOKENS)
    assert told in str(raised.value) and "see exist_onnx_path" in str(raised.value)


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path / "m.onnx", {"image": (TensorProto.FLOAT, ["n", 1, 8, 8])})
    with pytest.raises(StepError, match=r"input image is .*; has 1 outputs; the case has 2 \(start, end\)"):
        fits(path, IMAGE, outputs=("start", "end"))
