"""Numeric precisions of the framework's model."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from proofmark.measuring.window import Compute


def framework_compute(model: torch.nn.Module, device: str, precision: str) -> Compute:
    """A callable over a copy of `model` on `device` at `precision` (fp32, tf32, fp16, bf16).

    Inputs are moved and floating-point ones converted inside the call: that is part of `core`,
    as it is for an engine.
    """
    import torch

    dtypes = {"fp16": torch.float16, "bf16": torch.bfloat16}
    dtype = dtypes.get(precision, torch.float32)
    if device != "cpu":
        use_tf32(precision == "tf32")
    placed = model if (dtype, device) == (torch.float32, "cpu") else copy.deepcopy(model).to(device, dtype)

    @torch.inference_mode()
    def compute(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        moved = [i.to(device, dtype if i.is_floating_point() else None, non_blocking=True) for i in inputs]
        output = placed(*moved)
        return [output] if isinstance(output, torch.Tensor) else list(output), 0.0

    return compute


def use_tf32(allowed: bool) -> None:
    """Whether float32 products and convolutions may round their factors to tf32. The default is mixed."""
    import torch

    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed


def count_flops(model: torch.nn.Module, inputs: list[torch.Tensor]) -> float:
    """Floating-point operations of one item, a multiply-add as two, by torch's flop counter.

    Args:
        inputs: one batch; its first item is used.
    """
    import torch

    counter, fast = flop_counter(), torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # a whole layer of an encoder as one operation, which isn't counted
    try:
        with torch.no_grad(), counter:
            model(*(tensor[:1] for tensor in inputs))
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return float(counter.get_total_flops())


def flop_counter() -> FlopCounterMode:
    """torch's, to be entered, where nothing is compiled. It learns what a processor computes as one operation.

    torch hides what its counter does from its compiler, and loads all of that for it, on the first operation: a second
    and more of a first case. So the function is taken as it was written, where torch lets it be seen.
    """
    from torch.utils import flop_counter as torchs

    mode: Any = getattr(torchs, "_FlopCounterMode", torchs.FlopCounterMode)
    if as_written := getattr(getattr(mode, "__torch_dispatch__", None), "__wrapped__", None):
        mode.__torch_dispatch__ = as_written
    aten = torchs.aten
    counter = torchs.FlopCounterMode(display=False, custom_mapping={aten.mkldnn_rnn_layer: _lstm_layer})
    formulas = counter.flop_registry
    formulas[aten._scaled_dot_product_flash_attention_for_cpu] = formulas[aten._scaled_dot_product_flash_attention]
    return counter


def _lstm_layer(inputs: torch.Size, of_input: torch.Size, of_hidden: torch.Size, *_: Any, **__: Any) -> int:
    """Of one direction."""
    return 2 * inputs[:-1].numel() * (of_input.numel() + of_hidden.numel())


def perturbed(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """A copy whose weights differ by normal noise of a twentieth of each tensor's spread: other answers, same work."""
    import torch

    other = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for weights in other.parameters():
            if weights.numel() > 1:
                weights.add_(0.05 * weights.std() * torch.randn(weights.shape, generator=generator))
    return other
