"""What a trial leaves its children, as safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from proofmark.errors import StepError, reason


def save(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write them, whole or not at all.

    Raises:
        OSError: no space, no permission.
    """
    from safetensors.torch import save_file

    draft = path.with_name(f".{path.name}")
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, draft)
    draft.replace(path)


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Tensors of a safetensors file.

    Raises:
        StepError: it is not there, or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (OSError, SafetensorError, ValueError) as error:
        raise StepError(f"the weights in {path} cannot be read: {reason(error)}") from None
