"""Recorded steps done again in the case's own model, on the processor, from the weights that they began with.

What an optimizer made of recorded gradients is looked at first, for that is quick. To compute a step's gradients again
may take a large model an hour here: that comes in the order of what says most, for there may be no time for all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from proofmark.errors import StepError
from proofmark.training.drawn_steps import RUN
from proofmark.training.feeding.batches import GlobalBatches, Share
from proofmark.training.feeding.loading import RankLoader
from proofmark.training.outcome.replay_checks import NOISY, QUIETEST
from proofmark.training.outside.gradients import Compared
from proofmark.training.outside.metric import shown
from proofmark.training.outside.recorded import Which, which_of
from proofmark.training.outside.replayed import Replayed
from proofmark.training.outside.updates import Updates
from proofmark.training.outside.vectors import Tensors, apart, fill, finite
from proofmark.training.ranks.left import read_left
from proofmark.training.ranks.model.own import LOWER, Fresh, make_fresh, named_gradients, named_weights, print_of
from proofmark.training.ranks.model.strategy import Place, on_device
from proofmark.training.spec import (
    AFTER,
    BEFORE,
    GRADIENTS,
    RANDOM,
    RANDOM_OF,
    STATE,
    STEP,
    WEIGHTS,
    TrainingSpec,
)

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingCase


REPLAYS = 6
"""Replays of a step whose dropout can't be drawn again as it was."""

CLOSE = 0.01
"""How far gradients in float32 on another processor may be off."""

ROUNDED = {"fp32": 1e-3, "tf32": 0.1, "fp16": 0.1, "bf16": 0.5}
"""How far roundings bring gradients off in most steps. Where they are further off, those of this step are tried."""

MOVED, MOVES = 4, {"fp32": 2.0**-20, "tf32": 2.0**-12, "fp16": 2.0**-12, "bf16": 2.0**-9}
"""How often they are tried; and at fp32 a few of them, what another algorithm's sums are off by, elsewhere one."""

HERE = Place(0, 0, 1, torch.device("cpu"))

NO_STATES: Tensors = {}


def _moved(tensor: torch.Tensor, move: float, chance: torch.Generator) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    sides = torch.randint(0, 2, tensor.shape, generator=chance) * 2 - 1
    return tensor * (1 + sides * move)


def _draw_as(state: torch.Tensor | None) -> bool:
    """Set torch's random state to a recorded one; leave it as it is where that is no CPU state. Whether it was set."""
    if state is not None and state.shape == torch.get_rng_state().shape and state.dtype == torch.uint8:
        with contextlib.suppress(RuntimeError):  # torch's word of bytes that are no state
            torch.set_rng_state(state)
            return True
    return False


def _misfits(
    own: Tensors, shapes: Mapping[str, torch.Size], before: Tensors, recorded: Tensors, after: Tensors
) -> tuple[str, ...]:
    """What of a recorded step is of another model: weights before it, gradients, or, in one word, weights after it."""
    wrong = [name for name in own if name not in before or before[name].shape != own[name].shape]
    wrong += [name for name, tensor in recorded.items() if shapes.get(name) != tensor.shape]
    whole = all(name in after and after[name].shape == shapes[name] for name in shapes)
    return tuple(shown(wrong)) or (() if whole else ("after the step",))


def _same(left: Tensors, used: Tensors, names: Iterable[str]) -> bool:
    """Whether tensors are the same to the last bit."""
    pairs = [(left[name], used.get(name)) for name in names]
    return all(
        other is not None
        and (own.dtype, own.shape) == (other.dtype, other.shape)
        and torch.equal(*(each.contiguous().reshape(-1).view(torch.uint8) for each in (own, other)))
        for own, other in pairs
    )


def _telling(runs: Sequence[Sequence[Path]]) -> Iterator[Path]:
    """Steps of runs in the order of what they say: one of each before a second of any, and those that chance has drawn
    of all the training before its first ones."""
    return (step for step in chain.from_iterable(zip_longest(*reversed(runs))) if step)


class Replay:
    """Replays the recorded steps of one training."""

    def __init__(self, case: TrainingCase, config: EffectiveConfig, spec: TrainingSpec) -> None:
        """Load the data.

        Raises:
            StepError: it is not there.
        """
        self._case, self._config, self._spec = case, config, spec
        data = case.build_dataset(config, "train")
        self._loader, self._world = RankLoader(data, workers=0), spec.nnodes * spec.nproc
        accumulation = config.gradient_accumulation_steps
        self._batches = GlobalBatches(len(data), config.global_batch_size, self._world, accumulation, spec.seed)
        self._steps = self._batches.steps(config.max_epoch, config.get("max_samples_termination"))
        self._last: tuple[int | None, Path] = None, Path()
        self._drawn = 0

    def all(self, directory: Path, last: int | None = None) -> Iterator[list[Replayed]]:
        """What is known of all steps that were recorded in a directory: at first what is known without computing their
        gradients again, and then after each whose gradients were.

        Args:
            directory: rank 0's.
            last: the training's last step, with whose weights it is examined; None where none came to an end.

        Raises:
            StepError: one is not whole, isn't of this training, or comes to no finite numbers.
        """
        self._last = last, directory / WEIGHTS
        recorded = sorted(self._which(folder).step for folder in directory.glob(STEP.format("*")))
        runs = [
            [directory / STEP.format(step) for _, step in run]
            for _, run in groupby(enumerate(recorded), lambda at: at[1] - at[0])
        ]
        found = {folder: step for run in runs for folder, step in zip(run, self._updated(run), strict=True)}
        yield list(found.values())
        model = self._fresh().model
        for folder in (folder for folder in _telling(runs) if found[folder].due):
            found[folder] = self._again(folder, found[folder], model)
            yield list(found.values())

    def _fresh(self) -> Fresh:
        fresh = make_fresh(self._case, self._config, self._spec.seed)
        if self._config.channels_last:
            fresh.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return fresh

    def _updated(self, folders: Sequence[Path]) -> Iterator[Replayed]:
        """Consecutive steps, without their gradients."""
        fresh, first = self._fresh(), self._which(folders[0]).step
        updates = Updates(self._case, self._config, fresh.model, self._steps, first)
        for folder, following in zip_longest(folders, folders[1:]):
            if folder == folders[0] and first > 1:
                state = folder / STATE
                kept = read_left(state, any_form=True) if os.path.lexists(state) else None
                updates.begin(kept, read_left(folder / GRADIENTS))
            yield self._update(folder, following, fresh, updates)

    def _update(self, folder: Path, following: Path | None, fresh: Fresh, updates: Updates) -> Replayed:
        number, model = self._which(folder).step, fresh.model
        before, recorded, after = (read_left(folder / name) for name in (BEFORE, GRADIENTS, AFTER))
        own = named_weights(model)
        shapes = {name: parameter.shape for name, parameter in model.named_parameters() if parameter.requires_grad}
        if misfits := _misfits(own, shapes, before, recorded, after):
            updates.unseen = f"step {number} was of another model"
            return Replayed(number, misfits=misfits)
        if not finite({name: before[name] for name in shapes}):
            raise StepError(f"{folder.name}: the weights that it begins with are not finite")
        lower = LOWER.get(self._config.precision)
        replaced = not all(_same(after, used, shapes) for used in self._afterwards(number, following))
        seeded = None
        if number == 1:
            seeded = all(fresh.prints[name].allows(print_of(before[name], None)) for name in own)
        if not finite(recorded) and lower is not None:  # a loss scaler skips such a step
            updates.skip()
            replaced |= not _same(before, after, shapes)
            return Replayed(number, seeded=seeded, unseen="its gradients are not finite", replaced=replaced)
        # steps between numbers of a lower precision are larger than training's
        if lower is not None and any(after[name].dtype in LOWER.values() for name in shapes):
            updates.unseen = "its weights are of a lower precision than its steps"
        update = None if updates.unseen else updates.off(before, recorded, after)
        unseen, state = updates.unseen, updates.wrong
        return Replayed(number, update=update, unseen=unseen, state=state, seeded=seeded, replaced=replaced, due=True)

    def _afterwards(self, step: int, following: Path | None) -> Iterator[Tensors]:
        """The weights after a step where they are used: by the next one that is recorded, or at training's end."""
        last, left = self._last
        if following:
            yield read_left(following / BEFORE)
        elif step == last and os.path.lexists(left):
            yield read_left(left)

    def _again(self, folder: Path, step: Replayed, model: torch.nn.Module) -> Replayed:
        """The same step with its gradients."""
        before, recorded, states = (read_left(folder / name) for name in (BEFORE, GRADIENTS, RANDOM))
        batches = list(self._data(self._which(folder)))
        found = self._compared(model, before, batches, recorded, states)
        rounding = 0.0
        if not found.noise and found.gradient > ROUNDED[self._config.precision]:
            rounding = self._rounding(model, before, batches)
        return replace(step, **vars(found), rounding=rounding, due=False)

    def _which(self, folder: Path) -> Which:
        return which_of(folder, self._batches, self._steps)

    def _data(self, which: Which) -> Iterator[tuple[Share, Batch]]:
        """What all ranks together had in the step."""
        for rank in range(self._world):
            shares = next(self._batches.shares(which.epoch, rank, which.batch))
            batches = self._loader.load([share.indices for share in shares], which.epoch)
            yield from zip(shares, (on_device(batch, self._config, HERE) for batch in batches), strict=True)

    def _compared(
        self,
        model: torch.nn.Module,
        before: Tensors,
        batches: list[tuple[Share, Batch]],
        recorded: Tensors,
        states: Tensors,
    ) -> Compared:
        """The recorded gradients with the replayed ones.

        Processes on a processor draw the same dropout again, each by its own of the random `states`, which are a rank's
        word; otherwise the mean of several replays is the measure.
        """
        drawn = [self._gradients(model, before, batches, each) for each in (states, {})]
        found, again = (Compared.of(each, drawn[:1]) for each in (recorded, drawn[1]))
        explained, undrawn = (max(each.gradient, each.astray) <= CLOSE for each in (found, again))
        if undrawn or (explained and self._drawn == RUN):  # one matrix may hide all noise
            return found
        drawn = [drawn[1], *(self._gradients(model, before, batches) for _ in range(REPLAYS - 1))]
        anew = Compared.of(recorded, drawn)
        if not explained:
            return anew
        alike = [Compared.of(each, [other for other in drawn if other is not each]) for each in drawn]
        # where parameters are few, an honest draw may lie as near
        if anew.noise < NOISY or min(each.gradient for each in alike) < QUIETEST * anew.noise:
            return found
        self._drawn += 1
        return replace(found, drawn=anew.gradient / anew.noise)

    def _rounding(self, model: torch.nn.Module, before: Tensors, batches: list[tuple[Share, Batch]]) -> float:
        """The furthest that gradients come by weights that are roundings of the precision off, each to a side that is
        drawn, and so by another order of summing up: where many activations lie at an edge, they fall to one side
        together."""
        chance, move, drawn = torch.Generator().manual_seed(0), MOVES[self._config.precision], []
        tried = ({name: _moved(each, move, chance) for name, each in before.items()} for _ in range(MOVED))
        for moved in (before, *tried):
            torch.manual_seed(0)  # the same dropout
            drawn.append(self._gradients(model, moved, batches))
        return max(apart(each, drawn[0], drawn[0]) for each in drawn[1:])

    def _gradients(
        self, model: torch.nn.Module, before: Tensors, batches: list[tuple[Share, Batch]], states: Tensors = NO_STATES
    ) -> dict[str, torch.Tensor]:
        """Gradients of the mean loss over the global batch, by the parts in which the ranks computed it; by each rank's
        random state, where that is known.

        Raises:
            StepError: they are no finite numbers.
        """
        fill(model, before)
        model.train()
        model.zero_grad(set_to_none=True)
        counts = [
            self._case.loss_weight(targets) * share.samples / len(share.indices) for share, (_, targets) in batches
        ]
        each, own, claimed = len(batches) // self._world, torch.get_rng_state(), False
        for number, (count, (_, (inputs, targets))) in enumerate(zip(counts, batches, strict=True)):
            if number % each == 0:
                claimed |= _draw_as(states.get(RANDOM_OF.format(number // each)))
            loss = self._case.train_step(model, inputs, targets)  # what counts for nothing draws its dropout too
            if count:
                (loss * (count / sum(counts))).backward()  # type: ignore[no-untyped-call]
        if claimed:  # what is drawn after a rank's state would be its word too
            torch.set_rng_state(own)
        gradients = {name: gradient.clone() for name, gradient in named_gradients(model).items()}
        if not finite(gradients):
            raise StepError("a recorded step, done again in the case's own model, has gradients that are not finite")
        return gradients
