"""From the framework's model to an ONNX file, and whether a file is ONNX at all."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from proofmark.errors import StepError, reason
from proofmark.inference.engine.exported import traced_as

if TYPE_CHECKING:
    import torch


def export_onnx(
    model: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    path: Path,
    input_names: Sequence[str],
    output_names: Sequence[str],
) -> None:
    """Export by torch's dynamo exporter with a dynamic batch dimension, and check the file.

    Args:
        inputs: one batch, as of `traced_as`.

    Raises:
        StepError: the model can't be exported.
    """
    import torch

    example, shapes = traced_as(inputs)
    for noisy in ("onnxscript", "torch.onnx"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(
                model,
                example,
                str(path),
                input_names=list(input_names),
                output_names=list(output_names),
                dynamic_shapes=shapes,
                dynamo=True,
                verbose=False,
            )
        except Exception as error:
            raise StepError(f"torch cannot export the model: {reason(error)}") from error
    check_onnx(path)


def check_onnx(path: Path) -> None:
    """See that a file is a valid ONNX model.

    Raises:
        StepError: unreadable, corrupt or not ONNX.
    """
    import onnx

    try:
        onnx.checker.check_model(str(path))
    except Exception as error:  # noqa: BLE001 (the checker and protobuf raise many types)
        raise StepError(f"{path}: not a valid ONNX model: {reason(error)}") from None
