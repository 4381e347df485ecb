"""How a model is spread over ranks and made faster: DDP or FSDP2, autocast, torch.compile, recomputation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
from torch.nn.parallel import DistributedDataParallel

from proofmark.errors import StepError
from proofmark.training.ranks.model.gathering import of_all

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.rules.config import EffectiveConfig


@dataclass(frozen=True)
class Place:
    """Where a rank is."""

    rank: int
    local_rank: int
    world: int
    device: torch.device


def bound(device: torch.device) -> torch.device | None:
    """What a process group is bound to as it begins, so that ranks connect at once. CUDA alone: torch makes no group by
    a backend that does not know the device, bound to it, nor one by gloo beside it, as for checkpoints."""
    return device if device.type == "cuda" else None


def prepare(model: torch.nn.Module, config: EffectiveConfig, place: Place) -> torch.nn.Module:
    """The model as it is trained: on its device, recomputing, sharded or replicated, compiled, as configured.

    Raises:
        StepError: there is nothing in it that could be computed again.
    """
    model = placed(model, config, place, recomputing=config.activation_checkpointing)
    if config.compile:
        model = torch.compile(model)  # type: ignore[assignment]
    if config.parallel == "ddp" and place.world > 1:
        devices = None if place.device.type == "cpu" else [place.device]
        model = DistributedDataParallel(model, device_ids=devices)
    return model


def placed(model: torch.nn.Module, config: EffectiveConfig, place: Place, recomputing: bool = False) -> torch.nn.Module:
    """The model on its device in the memory layout that is configured, and sharded where it is.

    Raises:
        StepError: it should be `recomputing`, and has no blocks.
    """
    model = model.to(place.device)
    if config.channels_last and config.parallel != "fsdp":  # which takes no parameter that is not contiguous
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if recomputing:
        if not (blocks := set(_blocks(model))):
            what = "the model has no ModuleList, whose elements are what is computed again; expected false"
            raise StepError(f"activation_checkpointing: {what}")
        apply_activation_checkpointing(model, check_fn=lambda module: module in blocks)
    if config.parallel == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard  # a second, which other ways of training don't need to wait

        mesh = init_device_mesh(place.device.type, (place.world,))  # else it is of whatever device torch sees first
        for block in _blocks(model):
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    return model


def on_device(batch: Batch, config: EffectiveConfig, place: Place) -> Batch:
    """A batch beside the model, images in the memory layout that is configured."""
    (inputs, targets), images = batch, torch.channels_last if config.channels_last else torch.preserve_format
    inputs = [
        tensor.to(place.device, non_blocking=True, memory_format=images if tensor.dim() == 4 else torch.preserve_format)
        for tensor in inputs
    ]
    return inputs, targets.to(place.device, non_blocking=True)


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The model to evaluate, compiled where it is: without DDP, which would exchange buffers at each call."""
    return model.module if isinstance(model, DistributedDataParallel) else model


def exchange(model: torch.nn.Module) -> Callable[[bool], AbstractContextManager[None]]:
    """The context of a micro-step, by whether it is the last one of its step: gradients are exchanged only then."""
    inner: Any = getattr(model, "_orig_mod", model)
    if hasattr(inner, "set_requires_gradient_sync"):  # fully sharded
        return lambda last: nullcontext(inner.set_requires_gradient_sync(last))
    if isinstance(inner, DistributedDataParallel):
        return lambda last: nullcontext() if last else inner.no_sync()
    return lambda last: nullcontext()


def awaited(model: torch.nn.Module, lacking: list[str]) -> list[str]:
    """Those of the parameters that got no gradient in a step without which its next forward pass fails."""
    inner = getattr(model, "_orig_mod", model)
    if not isinstance(inner, DistributedDataParallel) or inner.find_unused_parameters or inner.static_graph:
        return []
    return [name for name in lacking if name not in inner.parameters_to_ignore]


def summed(values: list[float], place: Place) -> list[float]:
    """Each value's sum over the ranks."""
    if place.world == 1:
        return values
    return list(of_all(values, place).sum(dim=0).tolist())


def largest(value: float, place: Place) -> float:
    """The largest of the ranks' values."""
    if place.world == 1:
        return value
    return float(of_all([value], place).max())


def share_buffers(model: torch.nn.Module, place: Place) -> None:
    """Give all ranks rank 0's buffers (running statistics), so that all evaluate the same model."""
    if place.world > 1:
        for buffer in model.buffers():
            dist.broadcast(buffer, 0)


def _blocks(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The repeated parts of a model: elements of its outermost ModuleLists."""
    found: list[torch.nn.Module] = []
    for child in model.children():
        found += list(child) if isinstance(child, torch.nn.ModuleList) else _blocks(child)
    return found
