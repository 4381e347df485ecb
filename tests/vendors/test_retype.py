"""Converting an ONNX model's types, checked by running what comes out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from proofmark.vendor import StepError
from tests.vendors.conftest import WEIGHT, linear
from vendors.nvidia.retype import converted, has_quantization

X = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)


def test_fp16_computes_in_fp16_and_looks_like_fp32(onnx_path: Path) -> None:
    model = converted(onnx_path, "fp16")
    onnx.checker.check_model(model, full_check=True)
    assert {tensor.data_type for tensor in model.graph.initializer} == {TensorProto.FLOAT16}
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (output,) = session.run(None, {"x": X})
    assert session.get_inputs()[0].type == "tensor(float)" and output.dtype == np.float32
    assert 1e-6 < np.abs(output - X @ WEIGHT).max() < 1e-2


def test_bf16_computes_in_bf16_at_an_opset_that_knows_it(onnx_path: Path) -> None:
    model = converted(onnx_path, "bf16")
    onnx.checker.check_model(model, full_check=True)
    assert {tensor.data_type for tensor in model.graph.initializer} == {TensorProto.BFLOAT16}
    assert model.opset_import[0].version >= 22
    (output,) = ReferenceEvaluator(model).run(None, {"x": X})
    assert output.dtype == np.float32
    assert 1e-4 < np.abs(output - X @ WEIGHT).max() < 0.1


def test_a_mask_of_the_lowest_float_stays_finite(tmp_path: Path) -> None:
    lowest = numpy_helper.from_array(np.array(np.finfo(np.float32).min), "lowest")
    path = linear(
        tmp_path / "mask.onnx",
        helper.make_node("Constant", [], ["mask"], value=lowest),
        helper.make_node("Constant", [], ["half"], value_float=0.5),
        helper.make_node("Mul", ["product", "half"], ["halved"]),
        helper.make_node("Max", ["halved", "mask"], ["y"]),
    )
    for precision in ("fp16", "bf16"):
        model = converted(path, precision)
        values = [numpy_helper.to_array(a.t) for n in model.graph.node for a in n.attribute if a.name == "value"]
        assert len(values) == 2 and all(np.isfinite(v.astype(np.float32)).all() for v in values)
    (output,) = onnxruntime.InferenceSession(converted(path, "fp16").SerializeToString()).run(None, {"x": X})
    assert np.allclose(output, X @ WEIGHT / 2, atol=1e-2)


def test_casts_to_float32_inside_follow(tmp_path: Path) -> None:
    path = linear(
        tmp_path / "cast.onnx",
        helper.make_node("Cast", ["product"], ["whole"], to=TensorProto.INT32),
        helper.make_node("Cast", ["whole"], ["back"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["back", "product"], ["y"]),
    )
    (output,) = onnxruntime.InferenceSession(converted(path, "fp16").SerializeToString()).run(None, {"x": X})
    product = X @ WEIGHT
    assert np.allclose(output, product + np.trunc(product), atol=1e-2)


def test_scales_that_the_standard_wants_in_float32_stay(tmp_path: Path) -> None:
    path = linear(
        tmp_path / "resize.onnx",
        helper.make_node("Constant", [], ["axes"], value_ints=[0, 1]),
        helper.make_node("Unsqueeze", ["product", "axes"], ["image"]),
        helper.make_node("Constant", [], ["scales"], value=numpy_helper.from_array(np.ones(4, dtype=np.float32))),
        helper.make_node("Resize", ["image", "", "scales"], ["resized"], mode="nearest"),
        helper.make_node("Squeeze", ["resized", "axes"], ["y"]),
    )
    (output,) = onnxruntime.InferenceSession(converted(path, "fp16").SerializeToString()).run(None, {"x": X})
    assert np.allclose(output, X @ WEIGHT, atol=1e-2)


@pytest.mark.parametrize("opset", [13, 18, 19, 21])
def test_scales_of_what_is_quantised_follow(tmp_path: Path, opset: int) -> None:
    path = linear(
        tmp_path / "qdq.onnx",
        helper.make_node("Constant", [], ["scale"], value_float=0.1),
        helper.make_node("Constant", [], ["ones"], value_floats=[1.0, 1.0, 1.0]),
        helper.make_node("Mul", ["product", "ones"], ["same"]),
        helper.make_node("QuantizeLinear", ["same", "scale"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale"], ["y"]),
    )
    model = onnx.load(path)
    model.opset_import[0].version = opset
    onnx.save(model, path)
    (output,) = ReferenceEvaluator(converted(path, "fp16")).run(None, {"x": X})
    assert output.dtype == np.float32 and np.abs(output - np.maximum(X @ WEIGHT, 0)).max() < 0.06


def test_control_flow_is_refused(tmp_path: Path) -> None:
    path = linear(tmp_path / "if.onnx", helper.make_node("Identity", ["product"], ["y"]))
    model = onnx.load(path)
    branch = helper.make_graph([], "branch", [], [])
    condition = helper.make_node("If", ["x"], ["z"], then_branch=branch, else_branch=branch)
    model.graph.node.append(condition)
    onnx.save(model, path)
    with pytest.raises(StepError, match="cannot be converted to fp16: it has If"):
        converted(path, "fp16")


def test_quantization_is_seen(tmp_path: Path, onnx_path: Path) -> None:
    scale = numpy_helper.from_array(np.array(0.1, dtype=np.float32))
    path = linear(
        tmp_path / "qdq.onnx",
        helper.make_node("Constant", [], ["scale"], value=scale),
        helper.make_node("QuantizeLinear", ["product", "scale"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale"], ["y"]),
    )
    assert has_quantization(onnx.load(path)) and not has_quantization(onnx.load(onnx_path))
