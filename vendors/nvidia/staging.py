"""The way of a batch from the host to the device: from where it lies, which `Nvidia.register_memory` page-locks."""

from __future__ import annotations

import torch


def fill(targets: list[torch.Tensor], inputs: list[torch.Tensor]) -> None:
    """Copy to tensors on the device, on the current stream; what has another type there is converted there."""
    for target, tensor in zip(targets, inputs, strict=True):
        # torch converts before it copies, on the host and by all of its cores
        same = tensor.dtype == target.dtype
        target.copy_(tensor if same else tensor.to("cuda", non_blocking=True), non_blocking=True)


def to_device(inputs: list[torch.Tensor], floating: torch.dtype) -> list[torch.Tensor]:
    """New tensors on the device, those of floating point in the given type."""
    moved = [tensor.to("cuda", non_blocking=True) for tensor in inputs]
    return [tensor.to(floating) if tensor.is_floating_point() else tensor for tensor in moved]
