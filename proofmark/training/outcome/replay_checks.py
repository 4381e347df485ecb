"""What an audited training's recorded steps are held to, once they were done again in the case's own model."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from proofmark.record.parts import Check
from proofmark.training.drawn_steps import RUN, recorded_steps
from proofmark.training.outcome.checks import REPLAYED, SEEDED

REPLAY = {"fp32": 1e-3, "tf32": 0.1, "fp16": 0.1, "bf16": 0.5}
"""How far gradients of a recorded step may be from those of the same step in float32, as a share of their length.

First steps of the embedded cases on a processor: float32 up to 5.3e-5; bfloat16 from 4e-3 to 6e-3, but 0.26 to 0.92
where convolutions are normalised by batches, in a schedule that was squeezed into 64 steps, up to 1.4 times what
roundings of the weights alone make of them.
"""

NOISE = 1.5
"""By how many standard deviations of replays, which draw their dropout anew, they may be further off: over many
parameters a replay is hardly nearer to the mean of others than one, nor farther."""

NOISIEST = 2.5
"""Standard deviations of replays, in lengths of their mean, beyond which no more is allowed. There are hardly any: of
six that have nothing in common, a deviation is 2.45 times as long as the mean, the root of six."""

ASTRAY = {"fp32": 0.5, "tf32": 0.5, "fp16": 0.5, "bf16": 0.85}
"""How much of its replayed gradient's length a matrix's recorded one may lack, in all but a twentieth of the matrices.
What has nothing to do with it lacks all of it.

Embedded cases on a processor, in trainings of 16 to 120 steps: 0.006 at bf16, but 0.58 where convolutions are
normalised by batches.
"""

QUIETEST, NOISY = 0.6, 0.05
"""How far gradients must at least be from the mean of replays, in standard deviations of those, in the median of the
steps that have such noise at all. One more draw is at 1.08 (six replays have a mean that is off by 0.41 itself), what
has drawn no dropout at 0.41: with a dropout of 0.1 a language model was seen from 1.05 to 1.12, without it from 0.41 to
0.46."""

ROUNDINGS = 10
"""By how many times what roundings make of them they may be further off, to ROUNDED_MOST.

ResNet-50 in another memory layout, its schedule squeezed into seven steps: up to 5.6e-2 of their length off, and up to
5.6 times what roundings make of them; in most steps less than that.
"""

ROUNDED_MOST = {"fp32": 0.5, "tf32": 0.5, "fp16": 0.5, "bf16": 1.0}
"""Beyond that they tell nothing over all parameters; matrix by matrix (ASTRAY) they still do."""

UPDATE = 0.05
"""How far what an optimizer made of recorded gradients may be from what the case's does, as a share of that, in the
worst tensor.

Embedded cases on a processor, steps at a schedule's beginning, in it and at its end: nothing is off beside roundings of
each weight, with the case's optimizers and a fused one, fp32 and bf16 (`ROUNDING` in
`proofmark/training/outside/updates.py`).
"""


def takes_steps(
    replayed: Sequence[Mapping[str, Any]],
    precision: str,
    trained: int | None = None,
    chances: Sequence[float] | None = None,
) -> Iterator[Check]:
    """Check recorded steps against their replays, as `Replayed` has them.

    Args:
        replayed: in the order of their numbers.
        precision: that of the training.
        trained: the number of its last step; None where that is not known.
        chances: by which its agent has drawn those that are recorded; None where a rank has, as it once did.
    """
    held = list[tuple[float, str]]()
    numbers = [step["step"] for step in replayed if "unseen" in step]
    if trained is not None and (gap := _gap(numbers, trained) or _not_as_drawn(numbers, trained, chances)):
        held.append((math.inf, gap))
    for step in replayed:
        held += _held(step, precision)
        if step["seeded"] is not None:
            what = "the first step does not begin with the weights that the case makes from the seed"
            yield Check(SEEDED, step["seeded"], float(not step["seeded"]), 0.0, what)
    drawn = [each["gradient"] / each["noise"] for each in replayed if each["noise"] >= NOISY and each["gradient"]]
    drawn += [each["drawn"] for each in replayed if each.get("drawn") is not None]
    if len(drawn) >= RUN and (median := statistics.median(drawn)) < QUIETEST:
        what = f"gradients are {median:.3g} deviations from the mean over dropout's draws: they drew less"
        held.append((QUIETEST / median, what))
    if held and (all_replayed(replayed) or max(held)[0] > 1):  # of what there was no time for nothing is borne out
        worst = max(ratio for ratio, _ in held)
        wrong = [what for ratio, what in held if ratio > 1]
        shown = ": " + "; ".join(wrong[:3]) if wrong else ""
        what = f"recorded steps, done again in the case's own model, come out otherwise{shown}"
        yield Check(REPLAYED, worst <= 1, worst if math.isfinite(worst) else None, 1.0, what)


def all_replayed(steps: Sequence[Mapping[str, Any]] | None) -> bool:
    """Whether of recorded steps none is left to be done again; None is what nobody looked at."""
    return steps is not None and not any(step.get("due") for step in steps)


def _held(step: Mapping[str, Any], precision: str) -> Iterator[tuple[float, str]]:
    """What a step is held to: its share of each bound, and what is wrong with it where that is more than all."""
    number = step["step"]
    if step["misfits"]:
        yield math.inf, f"step {number} was of another model ({', '.join(step['misfits'][:3])})"
    if step["gradient"] is not None:
        rounded = min(ROUNDINGS * step.get("rounding", 0.0), ROUNDED_MOST[precision])
        bound = REPLAY[precision] + NOISE * min(step["noise"], NOISIEST) + rounded
        yield step["gradient"] / bound, f"the gradients of step {number} are {step['gradient']:.3g} of their length off"
        stray = f"the gradients of step {number} are others in many matrices (as {step.get('stray')})"
        yield step.get("astray", 0.0) / ASTRAY[precision], stray
    if step["update"] is not None:
        off = f"step {number} changed the weights otherwise by {step['update']:.3g} of what it should"
        yield step["update"] / UPDATE, off
    if step.get("replaced"):
        yield math.inf, f"the weights that step {number} left were others when they were used"
    if step.get("state"):
        yield math.inf, f"before step {number} {step['state']}"


def _gap(recorded: Sequence[int], trained: int) -> str | None:
    """What lacks of recorded steps, or is too much: a recorder leaves the first RUN, and a whole run of later ones as
    soon as there are so many (the first begins right after those, and gives way to another whole one alone). One in
    which training ended is beside that."""
    if not recorded:
        return None
    cut = recorded[2 * RUN :]
    in_runs = all(_in_a_row(steps) for steps in (recorded[:RUN], recorded[RUN : 2 * RUN], cut))
    enough = len(recorded) >= min(trained - recorded[0] + 1, 2 * RUN)
    if in_runs and enough and recorded[-1] <= trained and (not cut or (len(cut) < RUN and cut[-1] == trained)):
        return None
    return f"of its {trained} steps only {', '.join(map(str, recorded))} are there of those that were recorded"


def _not_as_drawn(recorded: Sequence[int], trained: int, chances: Sequence[float] | None) -> str | None:
    if not recorded or chances is None:
        return None
    before = recorded[0] - 1  # a training that goes on from a checkpoint begins there
    due = [before + step for step in recorded_steps(chances, trained - before)]
    if due == list(recorded):
        return None
    return f"steps {', '.join(map(str, recorded))} are recorded, drawn were {', '.join(map(str, due))}"


def _in_a_row(steps: Sequence[int]) -> bool:
    return all(then == step + 1 for step, then in pairwise(steps))
