"""The case's own model: made before any vendor's code is there, and made again to hold a vendor's against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import xxhash

from proofmark.measuring.rehearsal import made_model
from proofmark.training.ranks.model.strategy import placed

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingCase
    from proofmark.training.ranks.model.strategy import Place

WRAPPERS = frozenset({"module", "_orig_mod", "_checkpoint_wrapped_module"})
"""Parts of a name that wrappers put before a model's own: DDP and its like, torch.compile, recomputation."""

EXTRA = "_extra_state"
"""torch's name for what a module keeps beside its weights, such as the scales of an 8-bit one."""

LOWER = {"fp16": torch.float16, "bf16": torch.bfloat16}
"""Precisions at which a vendor may hold weights in fewer bits, and how."""


@dataclass(frozen=True)
class Print:
    """What one tensor of a model is: its shape, and the digests of its values as dtypes hold them."""

    shape: tuple[int, ...]
    digests: Mapping[torch.dtype, str]

    def allows(self, other: Print) -> bool:
        """Whether another tensor has one of these dtypes, and the values in it."""
        return other.digests.items() <= self.digests.items()


@dataclass(frozen=True)
class Fresh:
    """A model that the case made from a seed, and what its weights were then.

    Attributes:
        trainable: elements of its parameters that training may change.
    """

    model: torch.nn.Module
    prints: Mapping[str, Print]
    trainable: int


def make_fresh(case: TrainingCase, config: EffectiveConfig, seed: int) -> Fresh:
    """The case's model from a seed. A rank makes it before it imports anything of a vendor's.

    Raises:
        StepError: there is no model, or the weights to begin with are not there or don't fit.
    """
    torch.manual_seed(seed)
    model = made_model(case, config)
    lower = LOWER.get(config.precision)
    prints = {name: print_of(tensor, lower) for name, tensor in named_weights(model).items()}
    return Fresh(model, prints, trainable(model))


def own_model(
    case: TrainingCase, config: EffectiveConfig, place: Place, weights: Mapping[str, torch.Tensor]
) -> torch.nn.Module:
    """The case's model, made anew, with other `weights` (rank 0's, unless they are sharded), ready to be evaluated."""
    with torch.random.fork_rng(devices=[]):
        model = placed(case.create_model(config), config, place)
    names = [name for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)]
    model.load_state_dict({name: weights[_plain(name)] for name in names}, strict=False)
    if place.world > 1 and config.parallel == "ddp":
        for value in model.state_dict().values():
            dist.broadcast(value, 0)
    return model.eval()


def named_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """A model's parameters and buffers by the names that the case gave them."""
    state = model.state_dict()
    return {
        _plain(name): value
        for name, value in state.items()
        if isinstance(value, torch.Tensor) and not name.endswith(EXTRA)
    }


def named_parameters(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """A model's parameters by the names that the case gave them."""
    return {_plain(name): parameter for name, parameter in model.named_parameters()}


def named_gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Gradients of a model's parameters that have one, by the names that the case gave them."""
    return {name: p.grad.detach() for name, p in named_parameters(model).items() if p.grad is not None}


def without_gradient(model: torch.nn.Module) -> list[str]:
    """A model's parameters that are trained and have no gradient, by the names that the case gave them; none where none
    has one, as with an optimizer that works within the backward pass."""
    trained = {name: p.grad for name, p in named_parameters(model).items() if p.requires_grad}
    lacking = [name for name, gradient in trained.items() if gradient is None]
    return lacking if len(lacking) < len(trained) else []


def named_state(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """What an optimizer keeps of a model's parameters, as `name.key`: numbers and plain tensors, and nothing else."""
    names = {parameter: name for name, parameter in named_parameters(model).items()}
    kept = getattr(optimizer, "state", None)
    found = {
        f"{names[parameter]}.{key}": torch.tensor(value, dtype=torch.float64) if _is_number(value) else value
        for parameter, entries in (kept.items() if isinstance(kept, Mapping) else ())
        if parameter in names and isinstance(entries, Mapping)
        for key, value in entries.items()
    }
    return {name: value for name, value in found.items() if _can_be_written(value)}


def print_of(tensor: torch.Tensor, lower: torch.dtype | None = None) -> Print:
    """The print of a tensor that is whole, in its dtype and, of a floating-point one, rounded to a `lower` one."""
    dtypes = {tensor.dtype} | ({lower} if lower and tensor.is_floating_point() else set())
    return Print(tuple(tensor.shape), {dtype: _digest(tensor.detach().to(dtype)) for dtype in dtypes})


def trainable(model: torch.nn.Module) -> int:
    """Elements of a model's parameters that training may change."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def _digest(tensor: torch.Tensor) -> str:
    """The digest of a tensor's values, whatever its layout in memory."""
    return str(xxhash.xxh3_128(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data).hexdigest())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _can_be_written(value: object) -> bool:
    """Whether it is a tensor, sharded perhaps, that any reader knows: one of a class of its own may not be written."""
    local: Any = getattr(value, "_local_tensor", value)
    return type(local) in (torch.Tensor, torch.nn.Parameter) and not local.is_complex()


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)
