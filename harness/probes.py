"""What an engine is called with in an honesty round, and what each call leaves behind."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.pace import MOST
from harness.threads import one_thread

if TYPE_CHECKING:
    import torch

    from harness.case import Loader
    from harness.loop import Compute

Synchronize = Callable[[], None]


@dataclass
class Call:
    """One call of the engine and what it left behind."""

    kind: str
    seconds: float
    inputs: list[torch.Tensor]
    before: list[torch.Tensor]
    outputs: list[torch.Tensor]
    snapshot: list[torch.Tensor]
    first_copy: float
    second_copy: float


def splice(one: list[torch.Tensor], other: list[torch.Tensor], share: float, shift: int) -> list[torch.Tensor]:
    """Inputs that nobody has seen: of each row the left part of `one`, the right part of another row of `other`.

    Shapes and types stay; tensors of one dimension are left as they are.

    Args:
        share: how much is the left part, 0 to 1.
        shift: by how many rows `other` is rolled, so that the same two batches give something new each time.
    """
    import torch

    spliced = []
    for left, right in zip(one, other, strict=True):
        if left.dim() < 2:
            spliced.append(left.clone())
            continue
        middle = min(max(1, round(share * left.shape[-1])), left.shape[-1] - 1)
        shifted = right[: len(left)].roll(shift, 0)
        spliced.append(torch.cat([left[..., :middle], shifted[..., middle:]], -1))
    return spliced


def pairs(loader: Loader) -> Iterator[tuple[list[torch.Tensor], list[torch.Tensor]]]:
    """Up to MOST pairs of full batches, from the start again when the data ends."""
    given = 0
    while given < MOST:
        previous: list[torch.Tensor] | None = None
        for inputs, _ in loader:
            if previous is not None and len(inputs[0]) < len(previous[0]):
                break
            yield inputs, previous or inputs
            previous, given = inputs, given + 1
            if given == MOST:
                return


def chains(data: list[torch.Tensor], other: list[torch.Tensor], chance: random.SystemRandom) -> tuple[Any, Any]:
    """Two batches of the data; and two new ones, of which the second comes twice.

    The figures are taken of calls that follow another call at once, so that no kind finds a warmer machine. All
    inputs are made before the first call, a repeat in memory of its own.
    """
    most = max(1, len(data[0]) - 1)
    with one_thread():
        new = [splice(data, other, chance.uniform(0.25, 0.75), chance.randint(1, most)) for _ in range(2)]
        return (other, data), (*new, [tensor.clone() for tensor in new[1]])


def timed_call(kind: str, engine: Compute, inputs: list[torch.Tensor], synchronize: Synchronize) -> Call:
    """Call an engine under the clock, and look at its answers before and after they could change."""
    with one_thread():
        before = [tensor.clone() for tensor in inputs]
    synchronize()
    start = time.perf_counter_ns()
    outputs, _ = engine(inputs)
    synchronize()
    idle = time.perf_counter_ns()
    with one_thread():
        copies = [output.detach().cpu() for output in outputs]
        copied = time.perf_counter_ns()
        for output in outputs:
            output.detach().cpu()
        copied_again = time.perf_counter_ns()
        snapshot = [copy.clone() for copy in copies]
    return Call(
        kind=kind,
        seconds=(idle - start) / 1e9,
        inputs=inputs,
        before=before,
        outputs=outputs,
        snapshot=snapshot,
        first_copy=(copied - idle) / 1e9,
        second_copy=(copied_again - copied) / 1e9,
    )
