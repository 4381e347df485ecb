"""The checks of a training's honesty: their names, which of them a run must have passed, and that of its clock."""

from __future__ import annotations

import math

from proofmark.record.parts import Check

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
