"""A model as a program that torch alone runs, for where none of a case's code is."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.errors import StepError, reason

if TYPE_CHECKING:
    import torch


def traced_as(inputs: Sequence[torch.Tensor]) -> tuple[tuple[torch.Tensor, ...], tuple[dict[int, Any], ...]]:
    """What a model is traced with, and which of its dimensions are free: that of the batch.

    Args:
        inputs: one batch; two rows of it are traced, since one would be taken for a constant.
    """
    import torch

    example = tuple(torch.cat([tensor[:1], tensor[:1]]) for tensor in inputs)
    batch = torch.export.Dim("batch", min=1)
    return example, tuple({0: batch} for _ in example)


def save_program(model: torch.nn.Module, inputs: Sequence[torch.Tensor], precision: str, path: Path) -> None:
    """Export a model at a precision: its steps are of the type of its weights, so that it can't be converted later.

    Args:
        inputs: one batch, as of `traced_as`.
        precision: fp16 or bf16; at any other, and for what an engine itself quantises, it is float32.

    Raises:
        StepError: the model can't be exported.
    """
    import torch

    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
    example, shapes = traced_as(inputs)
    example = tuple(tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in example)
    converted = model if dtype == torch.float32 else copy.deepcopy(model).to(dtype)
    logging.getLogger("torch.export").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.export.save(torch.export.export(converted, example, dynamic_shapes=shapes), path)
        except Exception as error:
            raise StepError(f"torch cannot export the model for the vendor's image: {reason(error)}") from error
