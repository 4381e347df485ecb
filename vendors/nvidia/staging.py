"""The way of a batch from the host to the device."""

from __future__ import annotations

import torch


class Staging:
    """Copies through pinned buffers, allocated once for the largest batch; the copies run on the current stream."""

    def __init__(self) -> None:
        self._pinned: dict[int, torch.Tensor] = {}
        self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def copy(self, inputs: list[torch.Tensor], targets: list[torch.Tensor]) -> None:
        """Fill device tensors of the inputs' shapes, converting to the targets' types on the device."""
        self._copied.synchronize()  # the buffers may still be read by the copies of the call before
        for index, (tensor, target) in enumerate(zip(inputs, targets, strict=True)):
            target.copy_(self._buffer(index, tensor).copy_(tensor), non_blocking=True)
        self._copied.record()

    def to_device(self, inputs: list[torch.Tensor], floating: torch.dtype) -> list[torch.Tensor]:
        """New tensors on the device, those of floating point in the given type."""
        dtypes = [floating if tensor.is_floating_point() else tensor.dtype for tensor in inputs]
        targets = [torch.empty(t.shape, dtype=d, device="cuda") for t, d in zip(inputs, dtypes, strict=True)]
        self.copy(inputs, targets)
        return targets

    def _buffer(self, index: int, tensor: torch.Tensor) -> torch.Tensor:
        buffer = self._pinned.get(index)
        if buffer is None or buffer.dtype != tensor.dtype or buffer.numel() < tensor.numel():
            buffer = torch.empty(tensor.numel(), dtype=tensor.dtype, pin_memory=True)
            self._pinned[index] = buffer
        return buffer[: tensor.numel()].view(tensor.shape)
