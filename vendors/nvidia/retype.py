"""Another floating-point type for an ONNX model: what strongly typed networks need in place of a builder flag.

All float32 tensors inside the graph become fp16 or bf16; inputs and outputs keep float32, with casts behind and before
them, so that callers see no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter

from proofmark.vendor import StepError

TYPES = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
FLOAT = TensorProto.FLOAT

BF16_OPSET = 22
"""The first in which convolutions and poolings may have bfloat16."""

QUANTIZED_OPSET = 19
"""The first in which what is quantised may have been fp16 or bfloat16. Its scales then are, too."""

KEEPS_FLOAT = {"Resize": (1, 2), "Upsample": (1,)}
"""Inputs that the standard wants in float32 whatever the data's type: region of interest, scales."""

NOT_CONVERTED = {"If", "Loop", "Scan"}


def has_quantization(model: onnx.ModelProto) -> bool:
    """Whether quantisation is written into the graph as Q/DQ nodes."""
    operators = {node.op_type for node in model.graph.node}
    return {"QuantizeLinear", "DequantizeLinear"} <= operators


def converted(path: Path, precision: str) -> onnx.ModelProto:
    """The model of `path` at fp16 or bf16.

    Raises:
        StepError: it holds what this conversion doesn't know.
    """
    model = onnx.load(path)
    target = TYPES[precision]
    least = BF16_OPSET if precision == "bf16" else QUANTIZED_OPSET if has_quantization(model) else 0
    if any(known.domain == "" and known.version < least for known in model.opset_import):
        model = version_converter.convert_version(model, least)
    graph = model.graph
    foreign = sorted({node.op_type for node in graph.node} & NOT_CONVERTED)
    if foreign or model.functions:
        raise StepError(f"{path}: cannot be converted to {precision}: it has {', '.join(foreign) or 'functions'}")
    kept = {
        node.input[index]
        for node in graph.node
        for index in KEEPS_FLOAT.get(node.op_type, ())
        if index < len(node.input)
    }
    for tensor in _constants(graph, kept):
        tensor.CopyFrom(_retyped(tensor, target))
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == FLOAT:
                attribute.i = target
    for value in graph.value_info:
        if value.name not in kept and value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = target
    _cast_at_the_border(graph, target)
    onnx.checker.check_model(model, full_check=True)
    return model


def _constants(graph: onnx.GraphProto, kept: set[str]) -> Iterator[TensorProto]:
    """Float32 tensors that the graph holds: initialisers, Constant nodes, the value of ConstantOfShape."""
    for tensor in graph.initializer:
        if tensor.data_type == FLOAT and tensor.name not in kept:
            yield tensor
    for node in graph.node:
        if node.op_type in ("Constant", "ConstantOfShape") and node.output[0] not in kept:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.FLOAT:
                    attribute.CopyFrom(helper.make_attribute("value", _tensor(attribute.f)))
                if attribute.type == onnx.AttributeProto.FLOATS:
                    attribute.CopyFrom(helper.make_attribute("value", _tensor(list(attribute.floats))))
                if attribute.t.data_type == FLOAT:
                    yield attribute.t


def _tensor(value: float | list[float]) -> TensorProto:
    return numpy_helper.from_array(np.array(value, dtype=np.float32))


def _retyped(tensor: TensorProto, target: int) -> TensorProto:
    """Finite values stay finite: masks are often the lowest float32, which fp16 doesn't reach."""
    values = numpy_helper.to_array(tensor)
    dtype = helper.tensor_dtype_to_np_dtype(target)
    most = 65504.0 if target == TensorProto.FLOAT16 else 3.3895314e38
    clipped = np.where(np.isfinite(values), np.clip(values, -most, most), values)
    return numpy_helper.from_array(clipped.astype(dtype), tensor.name)


def _cast_at_the_border(graph: onnx.GraphProto, target: int) -> None:
    """Float32 outside, the target inside."""
    for value in graph.input:
        if value.type.tensor_type.elem_type == FLOAT:
            inside = f"{value.name}_inside"
            _rename(graph, value.name, inside, inputs=True)
            graph.node.insert(0, helper.make_node("Cast", [value.name], [inside], to=target))
    for value in graph.output:
        if value.type.tensor_type.elem_type == FLOAT:
            inside = f"{value.name}_inside"
            _rename(graph, value.name, inside, inputs=False)
            _rename(graph, value.name, inside, inputs=True)
            graph.node.append(helper.make_node("Cast", [inside], [value.name], to=FLOAT))


def _rename(graph: onnx.GraphProto, old: str, new: str, *, inputs: bool) -> None:
    for node in graph.node:
        names = node.input if inputs else node.output
        for index, name in enumerate(names):
            if name == old:
                names[index] = new
