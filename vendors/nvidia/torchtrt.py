"""Torch-TensorRT's dynamo front end: TensorRT engines inside a torch module."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

from proofmark.vendor import EffectiveConfig, StepError
from vendors.nvidia import inductor


class InferModel(inductor.InferModel):
    """Compiles each batch size at its first call, in the untimed warm-up.

    The model has the tested precision already and its types are kept, so nothing is chosen behind our back.
    """

    def compiled(self, model: torch.nn.Module, config: EffectiveConfig) -> Callable[..., object]:
        try:
            importlib.import_module("torch_tensorrt")  # registers the back end "tensorrt"
        except Exception as error:  # noqa: BLE001 (of its libraries that are missing it raises any type)
            raise StepError(f"torch_tensorrt cannot be imported: {error}") from None
        options: dict[str, str | int | bool | Callable[..., Any]] = {
            "use_explicit_typing": True,
            "disable_tf32": config.effective_precision != "tf32",
            "pass_through_build_failures": True,
            "min_block_size": 1,
        }
        return torch.compile(model, backend="tensorrt", dynamic=False, options=options)
