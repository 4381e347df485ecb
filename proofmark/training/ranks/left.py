"""What rank 0 leaves for the referee outside: the weights with which it says that it reached the target.

Their digest is in what it says when training ends, by which they are known whenever they are written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from proofmark.errors import StepError
from proofmark.plain_json import is_regular_file
from proofmark.training.ranks.model.own import named_weights
from proofmark.training.ranks.model.strategy import Place, unwrapped
from proofmark.training.spec import WEIGHTS

FORMS = frozenset(
    {torch.float64, torch.float32, torch.bfloat16, torch.float16}
    | {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool}
)
"""The dtypes of what a rank leaves: weights, buffers, gradients, counts. torch computes with no others as with these
(float8, complex or unsigned numbers of 16 bits, say)."""

LONGEST_NAME = 200
"""Characters of a tensor's that are told."""

Alive = Callable[[], object]
"""Is called before each tensor, as a sign of life: a large model takes long."""


def last_weights(model: torch.nn.Module, place: Place, alive: Alive = lambda: None) -> dict[str, torch.Tensor]:
    """A copy of the weights by the case's names, on rank 0. Every rank calls it, since a sharded tensor is gathered
    from all."""
    return _whole(named_weights(unwrapped(model)), place, alive)


def leave_weights(weights: Mapping[str, torch.Tensor], directory: Path) -> None:
    """Write rank 0's.

    Raises:
        OSError: no space, no permission.
    """
    save_file(dict(weights), directory / WEIGHTS)


def digest_of(weights: Mapping[str, torch.Tensor], alive: Alive = lambda: None) -> str:
    """SHA-256 of the names, the forms and the values of tensors on the processor, in whatever order they are."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        alive()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def save_whole(tensors: Mapping[str, torch.Tensor], place: Place, path: Path, alive: Alive = lambda: None) -> None:
    """Write tensors, gathered where they are sharded, from rank 0.

    Raises:
        OSError: no space, no permission.
    """
    whole = _whole(tensors, place, alive)
    if place.rank == 0:
        alive()
        save_file(whole, path)


def _whole(tensors: Mapping[str, torch.Tensor], place: Place, alive: Alive = lambda: None) -> dict[str, torch.Tensor]:
    """A copy of each, on the processor, on rank 0: safetensors takes no two that share memory."""
    whole = {}
    for name, tensor in tensors.items():
        alive()
        gathered = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        if place.rank == 0:
            whole[name] = gathered.detach().to("cpu", copy=True).contiguous()
    return whole


def read_left(path: Path, any_form: bool = False) -> dict[str, torch.Tensor]:
    """What a rank left.

    Args:
        path: of the file.
        any_form: whatever its numbers are; otherwise those of FORMS alone.

    Raises:
        StepError: it is not there, or no file of tensors, or of numbers of a dtype that no training has.
    """
    try:
        if not is_regular_file(path):
            raise StepError(f"{path.name}, which rank 0 left, is not a regular file")
        left = load_file(path)
    except FileNotFoundError:
        raise StepError(f"rank 0 left no {path.name}") from None
    except (OSError, SafetensorError) as error:
        raise StepError(f"{path.name}, which rank 0 left, can't be read: {error}") from None
    for name, tensor in left.items():
        if tensor.dtype not in FORMS and not any_form:
            what = f"has {name[:LONGEST_NAME]} as {str(tensor.dtype).removeprefix('torch.')}, which no training leaves"
            raise StepError(f"{path.name}, which rank 0 left, {what}")
    return left
