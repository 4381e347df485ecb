"""What the case's own optimizer makes of recorded gradients, step after step of a run of them.

Its learning rate follows from the step's number, and its state from the steps before: in a run that begins with the
first step of a training nothing of it is a rank's word. Elsewhere what a rank says that it was is where the run begins,
and from there on the state is the referee's: one that was made up to explain the first update must explain the next.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from proofmark.training.outside.metric import shown
from proofmark.training.outside.vectors import MOST, Tensors, apart, fill
from proofmark.training.ranks.left import FORMS

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingCase

ROUNDING = 4 * torch.finfo(torch.float32).eps
"""Of each weight, by which its update may be off: late in a schedule it is hardly more than that, and an optimizer
rounds a weight once or twice (decay, step).

Embedded cases on a processor, as `_otherwise` has the worst tensor: 2e-6 off without this where a fused optimizer took
the steps, nothing with it (5e-9 with one rounding, of language models); nothing at all with the case's own, of language
models (AdamW, LAMB; fp32, bf16).
"""

COUNTER = "step"
"""The key under which torch's optimizers count the steps that a parameter was in."""


class Updates:
    """Makes the updates of one run of steps again.

    Attributes:
        unseen: why the updates from now on can't be done again; None where they can.
        wrong: what the state that the rank claims can't be; None where it can.
    """

    def __init__(
        self, case: TrainingCase, config: EffectiveConfig, model: torch.nn.Module, steps: int, first: int
    ) -> None:
        """The case's optimizer, and its schedule as it is at a step.

        Args:
            case: what is trained.
            config: the settings.
            model: the case's own, whose weights are changed.
            steps: of the whole training.
            first: the step that the run begins with, from 1.
        """
        self._model, self._parameters = model, dict(model.named_parameters())
        self._optimizer = case.create_optimizer(model, config)
        self._schedule = case.create_scheduler(self._optimizer, config, steps)
        self._first, self._skips = first, config.precision == "fp16"
        self.unseen: str | None = None
        self.wrong: str | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that the optimizer took no step before its schedule's
            for _ in range(first - 1):
                self._schedule.step()

    def begin(self, claimed: Tensors | None, changed: Iterable[str]) -> None:
        """Take what the rank claims that the optimizer kept before the run.

        Args:
            claimed: by `name.key`; None where that was not recorded, though a Recorder does.
            changed: names of the parameters that have gradients in its first step.
        """
        if claimed is None:  # a recorder writes what there is, of an optimizer that keeps nothing too
            self.unseen = self.wrong = "what its optimizer kept was not recorded"
            return
        state: dict[str, dict[str, torch.Tensor]] = defaultdict(dict)
        for name, tensor in claimed.items():
            owner, _, key = name.rpartition(".")
            state[owner][key] = tensor
        own = self._kept()
        others = [name for name in state if _form(state[name]) != _form(own.get(name, {}))]
        others += [name for name, tensor in claimed.items() if tensor.dtype not in FORMS]
        others += [name for name in changed if name not in state and own.get(name)]
        if others:
            self.unseen = f"its optimizer does not keep what the case's does ({', '.join(shown(others)[:3])})"
            return
        self.wrong = _wrong(claimed, self._first - 1, self._skips)
        if self.wrong:
            self.unseen = "what its optimizer is said to have kept can't be"
            return
        for name, parameter in self._parameters.items():
            if name in state:
                _take(own[name], state[name])
            elif parameter in self._optimizer.state:
                del self._optimizer.state[parameter]

    def skip(self) -> None:
        """A step that a loss scaler left out: the schedule goes on without it."""
        self._schedule.step()

    def off(self, before: Tensors, gradients: Tensors, after: Tensors) -> float:
        """How far what became of the weights is from what the case's optimizer makes of a step's gradients.

        Args:
            before: weights with which it began.
            gradients: as recorded; unclipped.
            after: weights with which it ended.

        Returns:
            The difference as a share of what it makes, in the worst tensor, as `_otherwise` has it.
        """
        fill(self._model, before)
        for name, parameter in self._parameters.items():
            parameter.grad = gradients[name].to(parameter.dtype, copy=True) if name in gradients else None
        self._optimizer.step()
        self._schedule.step()
        worst = 0.0
        for name, parameter in self._parameters.items():
            worst = max(worst, _otherwise(before[name], after[name], parameter.detach(), gradients.get(name)))
        return worst

    def _kept(self) -> dict[str, Any]:
        """What the optimizer keeps of each parameter, by its name, in the form that it has after a step."""
        for parameter in self._parameters.values():
            parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
        self._optimizer.step()
        return {name: self._optimizer.state.get(each, {}) for name, each in self._parameters.items()}


def _otherwise(before: torch.Tensor, end: torch.Tensor, wanted: torch.Tensor, gradient: torch.Tensor | None) -> float:
    """How far a tensor's update is from what is wanted, beside roundings of each weight: the furthest of

    - the length of the difference, in lengths of the update. A single weight may be as long as all others, one that
      belongs to nothing and decays, say: so also
    - what each weight is off in its own update, 1 at most, in the root of its mean square: over all weights, and over
      those alone that have a gradient, which may be few.
    """
    start, aim = before.double(), wanted.double()
    update = aim - start
    off = ((end.double() - aim).abs() - ROUNDING * torch.maximum(start.abs(), aim.abs())).clamp(min=0)
    if not off.isfinite().all() or not update.isfinite().all():
        return MOST
    shares = torch.where(off > 0, off / update.abs(), off).clamp(max=1)
    far = [apart({"": off}, {}, {"": update}), _root_mean_square(shares)]
    return max([*far, _root_mean_square(shares[gradient != 0])] if gradient is not None else far)


def _root_mean_square(shares: torch.Tensor) -> float:
    return float(shares.square().mean().sqrt()) if shares.numel() else 0.0


def _form(kept: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {key: tuple(getattr(value, "shape", ())) for key, value in kept.items() if value is not None}


def _take(own: dict[str, Any], claimed: Tensors) -> None:
    for key, tensor in claimed.items():
        if isinstance(own[key], torch.Tensor):
            own[key].copy_(tensor)
        else:
            own[key] = type(own[key])(tensor.item())


def _wrong(claimed: Tensors, steps: int, skips: bool) -> str | None:
    """What a state after so many steps can't be.

    Args:
        claimed: it, in the form of the case's own.
        steps: before it.
        skips: whether a loss scaler may have left some of them out.
    """
    broken = [name for name, tensor in claimed.items() if not tensor.isfinite().all()]
    broken += [name for name, tensor in claimed.items() if name.endswith("_sq") and (tensor < 0).any()]
    if broken:
        return f"its optimizer is said to have kept what no step leaves ({', '.join(shown(broken)[:3])})"
    counters = [tensor for name, tensor in claimed.items() if name.rpartition(".")[2] == COUNTER]
    counts = [float(count) for tensor in counters for count in tensor.reshape(-1).tolist()]
    # that of a parameter which had no gradient in some steps may be behind
    wrong = [count for count in counts if not 0 <= count <= steps or not count.is_integer()]
    if not wrong and not skips and max(counts, default=steps) < steps:
        wrong = [max(counts)]
    if wrong:
        return f"its optimizer is said to have counted {wrong[0]:g} steps, and there were {steps}"
    return None
