"""What an engine is called with in an honesty round, and what each call leaves behind."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proofmark.measuring.audible_loader import AudibleLoader
from proofmark.measuring.drawn import is_torchs_own
from proofmark.measuring.pace import FEWEST, MOST
from proofmark.measuring.window import Apart, Compute, Synchronize, run_window
from proofmark.process.threads import one_thread

if TYPE_CHECKING:
    import torch

    from proofmark.case import Loader


@dataclass
class Call:
    """One call of the engine and what it left behind.

    Attributes:
        seconds: its compute window.
        inputs: what it was given, where it can write.
        before: the same as it was before the call.
        outputs: what it returned.
        answer: the same as it was when the clock was stopped.
    """

    seconds: float
    inputs: list[torch.Tensor]
    before: list[torch.Tensor]
    outputs: list[torch.Tensor]
    answer: list[torch.Tensor]


def splice(one: list[torch.Tensor], other: list[torch.Tensor], share: float, shift: int) -> list[torch.Tensor]:
    """Inputs that nobody has seen, each of a row of `one` and another row of `other`.

    Numbers are blended: of a picture cut in two, what the first layers make of either part may be known by heart. Names
    have no mean: whole numbers are those of `one` on the left and those of `other` on the right. Shapes and types stay;
    tensors with one value to a row are left as they are.

    Args:
        share: how much is of `one`, 0 to 1.
        shift: by how many rows `other` is rolled, so that the same two batches give something new each time.
    """
    import torch

    spliced = []
    for left, right in zip(one, other, strict=True):
        axis = next((axis for axis in range(left.dim() - 1, 0, -1) if left.shape[axis] > 1), None)
        if axis is None:
            spliced.append(left.clone())
            continue
        shifted = right[: len(left)].roll(shift, 0)
        made = torch.lerp(shifted, left, share) if left.is_floating_point() else None
        if made is None:
            made = _cut(left, shifted, share, axis)
        elif not (finite := made.isfinite()).all():  # a mask's infinities have no mean
            made = torch.where(finite, made, _cut(left, shifted, share, axis))
        spliced.append(made)
    return spliced


def _cut(left: torch.Tensor, right: torch.Tensor, share: float, axis: int) -> torch.Tensor:
    """Along an axis, the first values of one and the last of the other."""
    import torch

    size = left.shape[axis]
    middle = min(max(1, round(share * size)), size - 1)
    return torch.cat((left.narrow(axis, 0, middle), right.narrow(axis, middle, size - middle)), axis)


def pairs(loader: Loader, chance: random.SystemRandom) -> Iterator[tuple[list[torch.Tensor], list[torch.Tensor]]]:
    """MOST pairs of full batches from everywhere in the data."""
    drawn = full_batches(loader, chance)
    previous = next(drawn)
    for _ in range(MOST):
        inputs = next(drawn)
        yield inputs, previous
        previous = inputs


def full_batches(loader: Loader, chance: random.SystemRandom) -> Iterator[list[torch.Tensor]]:
    """The inputs of full batches as the loader makes them, from everywhere in the data, without end.

    Where torch's DataLoader knows which items are in which batch, those that are drawn are loaded, and no others, in
    this process. Any other loader is walked through.
    """
    plain = loader.silent if isinstance(loader, AudibleLoader) else loader
    if is_torchs_own(plain):
        batches = list(plain.batch_sampler)
        full = [batch for batch in batches if len(batch) == len(batches[0])]
        while True:
            chance.shuffle(full)
            drawn = type(plain)(plain.dataset, batch_sampler=full, collate_fn=plain.collate_fn)
            yield from (inputs for inputs, _ in (loader.audibly(drawn) if isinstance(loader, AudibleLoader) else drawn))
    while True:
        yield from _walked(loader, set(chance.sample(range(len(loader)), min(len(loader), FEWEST + 1))))


def _walked(loader: Loader, wanted: set[int]) -> Iterator[list[torch.Tensor]]:
    """Those batches of one walk over the data that are wanted and full."""
    size = 0
    for number, (inputs, _) in enumerate(loader):
        size = size or len(inputs[0])
        if number in wanted and len(inputs[0]) == size:
            yield inputs
        if number == max(wanted):
            return


def chains(
    data: list[torch.Tensor], other: list[torch.Tensor], chance: random.SystemRandom
) -> tuple[list[list[torch.Tensor]], list[list[torch.Tensor]]]:
    """Two batches of the data, then a new one; and two new ones, of which the second comes twice.

    What is compared stands at the same place of either, the second or the third: of calls that follow one another the
    later are often quicker, most of all on a busy machine, and a repeat, which is always a later one, would pay for
    that. All inputs are made before the first call, a repeat in memory of its own.
    """
    most = max(1, len(data[0]) - 1)
    with one_thread():
        once, begun, new = [splice(data, other, chance.uniform(0.25, 0.75), chance.randint(1, most)) for _ in range(3)]
        return [other, data, once], [begun, new, [tensor.clone() for tensor in new]]


def timed_call(engine: Compute, inputs: list[torch.Tensor], synchronize: Synchronize) -> Call:
    """Call an engine as a timed round does, and keep what it was asked."""
    apart = isinstance(engine, Apart)
    with one_thread():
        before = inputs if apart else [tensor.clone() for tensor in inputs]
    window = run_window(engine, inputs, synchronize)
    return Call(window.seconds, window.given, before, window.outputs, window.answer)
