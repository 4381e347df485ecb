"""torch.compile with CUDA graphs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import torch

from proofmark.vendor import EffectiveConfig, StepError
from vendors.nvidia import nvml
from vendors.nvidia.staging import to_device

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class InferModel:
    """Compiles once for each batch size, in the untimed warm-up. `inductor_mode` is a mode of torch.compile."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module | None) -> None:
        precision = config.effective_precision
        if precision not in DTYPES:
            raise StepError(f"this compiler cannot run {precision}: it knows {', '.join(DTYPES)}")
        nvml.check_has(precision)
        if model is None:
            raise StepError("this compiler needs the framework's model")
        if not torch.cuda.is_available():
            raise StepError("torch finds no CUDA device: is this a CUDA build, and is a driver loaded?")
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
        self.dtype = DTYPES[precision]
        self.model = self.compiled(copy.deepcopy(model).to("cuda", self.dtype).eval(), config)

    def compiled(self, model: torch.nn.Module, config: EffectiveConfig) -> Callable[..., object]:
        """What a subclass changes."""
        mode = config.get("inductor_mode", "max-autotune")
        if mode not in MODES:
            raise StepError(f"inductor_mode is {mode!r}; expected one of {', '.join(MODES)}")
        return torch.compile(model, mode=mode, dynamic=False)

    @torch.inference_mode()
    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        output = self.model(*to_device(inputs, self.dtype))
        outputs = [output] if isinstance(output, torch.Tensor) else list(output)  # type: ignore[call-overload]
        return [tensor.clone() for tensor in outputs], 0.0  # a CUDA graph answers in the same memory every time
