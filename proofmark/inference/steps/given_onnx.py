"""An ONNX file that the user gives in place of an exported one: whether it can be the case's model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.errors import StepError
from proofmark.measuring.rehearsal import description

if TYPE_CHECKING:
    import torch


def check_fits(path: Path, inputs: Sequence[torch.Tensor], outputs: Sequence[str]) -> None:
    """See that a valid file takes what the case's loader yields, and has as many answers as the case at least.

    By its declarations alone: what it answers is measured later. Neither names nor the size of a batch are held against
    it, nor one kind of floating-point number for another: an engine may see to them.

    Args:
        path: of the file.
        inputs: one batch.
        outputs: names of the case's.

    Raises:
        StepError: it doesn't; with all that is wrong.
    """
    import onnx

    graph = onnx.load(str(path), load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}  # older files list them among the inputs
    taken = [value for value in graph.input if value.name not in constants]
    wrong = []
    if len(taken) != len(inputs):
        wrong.append(f"takes {len(taken)} inputs; the case's are {description(list(inputs))}")
    else:
        wrong += [why for value, tensor in zip(taken, inputs, strict=True) if (why := _unlike(value, tensor))]
    if len(graph.output) < len(outputs):
        wrong.append(f"has {len(graph.output)} outputs; the case has {len(outputs)} ({', '.join(outputs)})")
    if wrong:
        raise StepError(f"{path}: is not of this case's model: {'; '.join(wrong)}; see exist_onnx_path")


def _unlike(value: Any, tensor: torch.Tensor) -> str | None:
    """Why an input can't be a tensor."""
    from onnx.helper import tensor_dtype_to_np_dtype

    declared = value.type.tensor_type
    if declared.HasField("shape"):
        shape = [each.dim_value if each.HasField("dim_value") else None for each in declared.shape.dim]
        fixed = zip(shape[1:], tensor.shape[1:], strict=False)
        if len(shape) != tensor.dim() or any(size not in (None, found) for size, found in fixed):
            shown = ", ".join("any" if size is None else str(size) for size in shape)
            return f"input {value.name} is ({shown}); the case's is {description(tensor)}"
    kind = tensor_dtype_to_np_dtype(declared.elem_type).kind if declared.elem_type else None
    if kind in (None, "V") or (kind == "f") == tensor.is_floating_point():  # V: bfloat16 and others numpy has not
        return None
    return f"input {value.name} takes {'floating-point' if kind == 'f' else 'whole'} numbers; the case's are otherwise"
