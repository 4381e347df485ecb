"""What a set of weights is, whatever it is called and wherever it lies."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from proofmark.record.parts import Identity

if TYPE_CHECKING:
    import torch


def identify(model: torch.nn.Module, origin: str) -> Identity:
    """SHA-256 over the names, types, shapes and bytes of a model's parameters and buffers."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return Identity(name="weights", sha256=digest.hexdigest(), origin=origin)
