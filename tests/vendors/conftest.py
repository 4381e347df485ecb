"""Configurations and a small ONNX model for the vendors' compilers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from proofmark.rules.config import EffectiveConfig, HostSettings

WEIGHT = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


def config_of(host: HostSettings | None = None, **values: Any) -> EffectiveConfig:
    """A case's configuration; keys that it doesn't have are a vendor's own."""
    plain = {"precision": None, "fp16": False, "batch_size": 8, "exist_compiler_path": None}
    return EffectiveConfig("inference", "tiny", "embedded", "any", {}, {**plain, **values}, host=host or HostSettings())


def linear(path: Path, *middle: onnx.NodeProto) -> Path:
    """An ONNX file of y = x @ WEIGHT with a dynamic batch; `middle` goes from `product` to `y`."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]), *middle]
    if not middle:
        nodes.append(helper.make_node("Identity", ["product"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


@pytest.fixture
def onnx_path(tmp_path: Path) -> Path:
    """The linear model."""
    return linear(tmp_path / "model.onnx")
