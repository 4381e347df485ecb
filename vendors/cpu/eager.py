"""Plain torch: the engine that adds nothing."""

from __future__ import annotations

from pathlib import Path

import torch

from proofmark.vendor import EffectiveConfig, StepError

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class InferModel:
    """Calls the framework's model, converted to the tested precision."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module) -> None:
        if config.effective_precision not in DTYPES:
            raise StepError(f"this compiler cannot run {config.effective_precision} on a CPU")
        self.dtype = DTYPES[config.effective_precision]
        self.model = self.compiled(model.to(self.dtype).eval())

    def compiled(self, model: torch.nn.Module) -> torch.nn.Module:
        """What a subclass changes."""
        return model

    @torch.inference_mode()
    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        output = self.model(*(i.to(self.dtype) if i.is_floating_point() else i for i in inputs))
        return [output] if isinstance(output, torch.Tensor) else list(output), 0.0
