"""Plain torch, with trouble on order."""

from __future__ import annotations

import atexit
from pathlib import Path

import torch

from proofmark.vendor import EffectiveConfig, StepError

from . import trouble


class InferModel:
    """Calls the framework's model."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module | None) -> None:
        trouble.at(config.case, "compile")
        atexit.register(trouble.at, config.case, "exit")
        if config.effective_precision == "fp16":
            raise StepError("no fp16 here")
        self.case = config.case
        self.model = model

    @torch.inference_mode()
    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        trouble.at(self.case, "call")
        assert self.model is not None
        answer = self.model(*inputs)
        return [answer] if isinstance(answer, torch.Tensor) else list(answer), 0.0
