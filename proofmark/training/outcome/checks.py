"""The checks of a training's honesty: their names, which of them a run must have passed, and that of its clock."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from proofmark.record.parts import Check
from proofmark.training.spec import RUN

PARAMETERS = "keeps the case's parameters"
WEIGHTS = "starts from the case's weights"
FUNCTION = "computes the case's function"
METRIC = "as good in the case's own model"
CLOCK = "keeps time"
SESSION_CLOCK = "keeps the session's time"
OUTSIDE = "as good outside the ranks"
PLAN = "trains the plan's samples"
REPLAYED = "takes the case's steps"
SEEDED = "begins with the seed's weights"

EVENT = "check"
"""The event of a rank's log with a check's outcome; its other fields are a record's `Check`."""

RANKS = frozenset({PARAMETERS, WEIGHTS, FUNCTION, METRIC})
"""Those that a rank makes. The others are made of what was seen outside of it, and are not its to tell."""


def required(adapted: bool, converged: bool, audited: bool = False, resumed: bool = False) -> frozenset[str]:
    """Checks without which a run that came to its end counts for nothing.

    Args:
        adapted: whether the vendor does any step its own way. Where it does none, the case's own model is the very
            object that is trained and evaluated, by the referee's own steps.
        converged: whether the target was reached.
        audited: whether steps were recorded.
        resumed: whether it went on from a checkpoint, and has no first step.
    """
    always = {
        PARAMETERS,
        WEIGHTS,
        CLOCK,
        *({REPLAYED} if audited else ()),
        *({SEEDED} if audited and not resumed else ()),
    }
    at_the_target = {OUTSIDE, *({METRIC} if adapted else ())}
    return frozenset(always | ({FUNCTION} if adapted else set()) | (at_the_target if converged else set()))


METRICS = {"fp32": 0.002, "tf32": 0.005, "fp16": 0.005, "bf16": 0.02}
"""By which share a metric may differ between two ways of computing the same weights', beside two samples' worth."""

ROUNDING = 2
"""Samples that two processors may answer otherwise with the same weights. In a mean each is worth one of its things;
in another metric, the samples' equal share of the value. Where nothing was counted none is worth anything."""

DEVIATIONS = 4.0
"""Standard errors by which the metric of some of the samples may be off that of all."""


def metric_bound(value: float, weight: float | None, samples: float, precision: str) -> float:
    """How far a metric may be from this value of the same weights', which is a mean over `weight` things or none."""
    worth = abs(value) / samples if weight is None and samples >= 1 else 0.0
    if weight is not None and weight >= 1:
        worth = 1 / weight
    return METRICS[precision] * abs(value) + ROUNDING * worth


def as_good(
    metric: str, claimed: float, found: float, weight: float | None, samples: float, error: float, precision: str
) -> Check:
    """Hold what a rank says that it reached against the same weights' metric in the referee's own process.

    Args:
        metric: its name.
        claimed: by the rank.
        found: by the referee, in the case's own model on the processor.
        weight: over how many things that is a mean; None where it is none.
        samples: of how many it is.
        error: how far it is from the metric of all the data, one standard error.
        precision: that of the training.
    """
    off, bound = abs(found - claimed), metric_bound(found, weight, samples, precision) + DEVIATIONS * error
    what = f"its {metric} is said to be {claimed:.5g}; its weights have {found:.5g} in a process without vendor's code"
    passed = off <= bound  # no number is not
    return Check(OUTSIDE, passed, off if math.isfinite(off) else None, bound if math.isfinite(bound) else None, what)


def keeps_the_plan(steps: int, samples: int, items: int, global_batch: int) -> Check:
    """Hold what a rank says of its steps and samples against the plan: each sample of `items` once per epoch."""
    each = -(-items // global_batch)
    planned = steps // each * items + min(steps % each * global_batch, items)
    what = f"it says that it trained on {samples} samples in {steps} steps, in which the plan has {planned}"
    return Check(PLAN, samples == planned, float(abs(samples - planned)), 0.0, what)


REPLAY = {"fp32": 1e-3, "tf32": 0.1, "fp16": 0.1, "bf16": 0.5}
"""How far gradients of a recorded step may be from those of the same step in float32, as a share of their length.

First steps of the embedded cases on a processor: float32 up to 5.3e-5; bfloat16 from 4e-3 to 6e-3, but 0.26 to 0.92
where convolutions are normalised by batches, in a schedule that was squeezed into 64 steps, up to 1.4 times what
roundings of the weights alone make of them.
"""

NOISE = 1.5
"""By how many standard deviations of replays, which draw their dropout anew, they may be further off: over many
parameters a replay is hardly nearer to the mean of others than one, nor farther."""

NOISIEST = 1.0
"""Standard deviations of replays beyond which they tell of the dropout and no more of the step: no more is allowed."""

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


def takes_steps(replayed: Sequence[Mapping[str, Any]], precision: str, trained: int | None = None) -> Iterator[Check]:
    """Hold recorded steps against what came of them when they were done again, as `Replayed` has it.

    Args:
        replayed: in the order of their numbers.
        precision: that of the training.
        trained: the number of its last step; None where that is not known.
    """
    held = list[tuple[float, str]]()
    if trained is not None and (gap := _gap([step["step"] for step in replayed if "unseen" in step], trained)):
        held.append((math.inf, gap))
    for step in replayed:
        held += _held(step, precision)
        if step["seeded"] is not None:
            what = "the first step does not begin with the weights that the case makes from the seed"
            yield Check(SEEDED, step["seeded"], float(not step["seeded"]), 0.0, what)
    drawn = [each["gradient"] / each["noise"] for each in replayed if each["noise"] >= NOISY and each["gradient"]]
    if len(drawn) >= RUN and (median := statistics.median(drawn)) < QUIETEST:
        what = f"gradients are {median:.3g} deviations from the mean over dropout's draws: they drew less"
        held.append((QUIETEST / median, what))
    if held:
        worst = max(ratio for ratio, _ in held)
        wrong = [what for ratio, what in held if ratio > 1]
        shown = ": " + "; ".join(wrong[:3]) if wrong else ""
        what = f"recorded steps, done again in the case's own model, come out otherwise{shown}"
        yield Check(REPLAYED, worst <= 1, worst if math.isfinite(worst) else None, 1.0, what)


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


def _in_a_row(steps: Sequence[int]) -> bool:
    return all(then == step + 1 for step, then in pairwise(steps))


CLOCK_SECONDS, CLOCK_SHARE = 1.0, 0.01
"""How far a rank's clock may be from its agent's. Both are the same host's, but a busy one may stop a rank between
reading its clock and saying so."""


WIDEST = 5.0
"""In units of that, how far the least and the most that an agent saw may lie apart."""


CLOSE = 0.02
"""Share of a training's seconds to which its time must be known if it is to be verified, and not the ranks' claim."""


def allowance(most: float) -> float:
    """Seconds by which a rank's clock may be from the `most` that its agent saw."""
    return CLOCK_SECONDS + CLOCK_SHARE * most


def is_close(least: float, most: float) -> bool:
    """Whether what an agent saw, and what a rank's clock may be from that, leave little of a training's time open."""
    return allowance(most) + most - least <= CLOSE * least


def is_certain(least: float, most: float) -> bool:
    """Whether an agent saw enough to hold a clock against it. What it saw later says of no clock that it is right."""
    return most - least <= WIDEST * allowance(most)


def keeps_time(said: float, least: float, most: float, what_took: str = "training took") -> Check:
    """Hold a rank's clock against its agent's: the seconds that it `said` must lie between the `least` and the `most`.

    Both are of processes that run, and of clocks that nobody sets: the time of day is not asked. The check's figure is
    how far they are apart, in units of how far they may be.
    """
    off, allowed = max(0.0, least - said, said - most), allowance(most)
    what = "its clock and the agent's, another process's, tell different times"  # no figure: times may be withheld
    if off > allowed:
        seen = " to ".join(dict.fromkeys((f"{least:.4g}", f"{most:.4g}")))
        what = f"its clock says that {what_took} {said:.4g} s, and the agent's, another process's, {seen} s"
    return Check(name=CLOCK, passed=off <= allowed, figure=off / allowed, bound=1.0, meaning=what)


SESSION_SECONDS, SESSION_SHARE = 30.0, 0.1
"""How far a rank's clock may be behind its session's, which hears of a training over a connection, late at times."""


def keeps_the_sessions_time(said: float, least: float) -> Check:
    """Hold a rank's clock against the session's, which saw `least` seconds of training pass."""
    off, allowed = max(0.0, least - said), SESSION_SECONDS + SESSION_SHARE * least
    what = "its clock and the session's, on another machine maybe, tell different times"
    if off > allowed:
        what = f"its clock says that training took {said:.4g} s, and the session saw {least:.4g} s pass"
    return Check(name=SESSION_CLOCK, passed=off <= allowed, figure=off / allowed, bound=1.0, meaning=what)
