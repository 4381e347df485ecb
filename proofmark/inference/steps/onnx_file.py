"""An ONNX file: what it is, whatever it is called, and what the model in it answers."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from proofmark.errors import StepError, reason
from proofmark.inference.engine.model_files import kept_beside

if TYPE_CHECKING:
    import torch

    from proofmark.measuring.window import Compute


def onnx_digest(path: Path) -> str:
    """SHA-256 of a valid ONNX file; where it keeps tensors in files beside it, of the list of all with theirs.

    Raises:
        OSError: one of them can't be read.
    """
    digests = {name: _digest(path.parent / name) for name in kept_beside(path)}
    if not digests:
        return _digest(path)
    listed = "".join(f"{digest} {name}\n" for name, digest in {"": _digest(path), **digests}.items())
    return hashlib.sha256(listed.encode()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def onnx_compute(path: Path) -> Compute:
    """The model of an ONNX file by ONNX Runtime on the processor, as it stands there: nothing is optimised.

    Raises:
        StepError: it can't be loaded.
    """
    import torch

    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read on import
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 (it has many types, none of them public; or it is not installed)
        raise StepError(
            f"{path}: ONNX Runtime, by which engines are held to it, cannot load it: {reason(error)}"
        ) from None
    names = [node.name for node in session.get_inputs()]

    def compute(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        feed = {name: tensor.numpy() for name, tensor in zip(names, inputs, strict=True)}
        return [torch.from_numpy(output) for output in session.run(None, feed)], 0.0

    return compute
