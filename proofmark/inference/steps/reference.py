"""What an engine's answers are held to, on the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from proofmark.errors import StepError
from proofmark.inference.case import InferenceCase
from proofmark.measuring.names import Shortfall
from proofmark.measuring.precision import framework_compute
from proofmark.measuring.window import Compute

if TYPE_CHECKING:
    import torch

Alive = Callable[[], None]


class Reference:
    """Answers, and says of names how near they were to being chosen. It may take longer than any engine."""

    def __init__(self, compute: Compute, alive: Alive, near: Shortfall | None = None) -> None:
        """`alive` is told of each call; without `near` nothing is said of names."""
        self._compute, self._alive, self._near = compute, alive, near

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        """What it answers, in no time of its own."""
        self._alive()
        return self._compute(inputs)

    def shortfall(self, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """As the case says; nothing, where it doesn't."""
        self._alive()
        return self._near(inputs, outputs) if self._near else []


def framework_reference(case: InferenceCase, model: torch.nn.Module, alive: Alive) -> Reference:
    """The framework in float32."""
    import torch

    @torch.inference_mode()
    def near(inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        return case.shortfall(model, inputs, outputs)

    return Reference(framework_compute(model, "cpu", "fp32"), alive, near)


def rehearse_shortfall(case: InferenceCase, model: torch.nn.Module, inputs: list[torch.Tensor]) -> None:
    """See that what a case says of names fits them, by those of the model's own answer to two samples.

    Raises:
        StepError: it doesn't.
    """
    if type(case).shortfall is InferenceCase.shortfall:
        return
    few = [tensor[:2] for tensor in inputs]
    reference = framework_reference(case, model, lambda: None)
    outputs, _ = reference(few)
    named = [tuple(output.shape) for output in outputs if not output.is_floating_point()]
    found = reference.shortfall(few, outputs)
    if found and [tuple(short.shape) for short in found] != named:
        shapes = [tuple(short.shape) for short in found]
        raise StepError(f"shortfall: answers {shapes}; expected one of each output of whole numbers, {named}")
    if any(bool((short > 1e-3).any()) for short in found):  # a tie may be another one in the next call
        raise StepError("shortfall: what the model itself names is said to have less than the highest score")
