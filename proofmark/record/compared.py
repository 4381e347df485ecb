"""A run's speed beside that of a baseline: what was compared, pair by pair, and the outcome."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from proofmark.record.figures import Figure, FigureKind
from proofmark.record.parts import Part, Verdict, VerdictKind

Rate = Annotated[float, Field(gt=0, lt=1e300)]
Bounds = tuple[Rate | None, Rate | None]


class Outcome(StrEnum):
    """What is known of a metric's ratio to the baseline's."""

    REGRESSION = "REGRESSION"
    IMPROVEMENT = "IMPROVEMENT"
    SAME = "SAME"
    AMBIGUOUS = "AMBIGUOUS"


ROUNDING = 1e-9
"""By how much a ratio that was a logarithm in between may differ."""

DIFFERENT = (Outcome.REGRESSION, Outcome.IMPROVEMENT)


class Ratio(Part):
    """A metric of this run over the baseline's.

    All of `low` to `high` is within the confidence of the comparison, where that has an `error`; beside a record it is
    what the case bears, of no known confidence.
    """

    SPEEDS = frozenset({"value", "low", "high", "base", "head", "loadings"})

    metric: str = Field(description="key of the figure")
    outcome: Outcome
    value: Rate | None = Field(description="the median over pairs; null before the first")
    low: Rate | None = Field(description="null: not bounded")
    high: Rate | None = Field(description="null: not bounded")
    pairs: int = Field(ge=0, description="that the outcome rests on; 0 where nothing was paired")
    base: tuple[Rate, ...] = Field(default=(), description="of each pair, items per second")
    head: tuple[Rate, ...] = ()
    loadings: tuple[Bounds, ...] = Field(
        default=(), description="between what it lies by each loading's pairs, where there was more than one"
    )

    def outcome_at(self, width: float, needed: int) -> Outcome:
        """The outcome, where two speeds count as equal if they lie no further apart than `width`, a share.

        All loadings must say it, and that it differs must be said by as many as are `needed`.
        """
        loadings = self.loadings or ((self.low, self.high),)
        outcome, *others = {_outcome_within(bounds, width) for bounds in loadings}
        enough = outcome not in DIFFERENT or len(loadings) >= needed
        return outcome if enough and not others else Outcome.AMBIGUOUS

    def unlike_its_pairs(self) -> str | None:
        """How it can't have come of the rates of pairs that stand beside it; None where it can."""
        if not self.pairs:
            return None if self.value is None else f"is {self.text}, and is to come of pairs"
        if not self.pairs <= len(self.base) == len(self.head):
            return f"is of {self.pairs} pairs, and there are {len(self.base)} and {len(self.head)} rates"
        each = [head / base for base, head in zip(self.base, self.head, strict=True)]
        least, most = min(each) * (1 - ROUNDING), max(each) * (1 + ROUNDING)
        if any(value is not None and not least <= value <= most for value in (self.value, self.low, self.high)):
            return f"is {self.text}, and no pair is below {least:.4g} or above {most:.4g}"
        return None

    @property
    def text(self) -> str:
        """The ratio and how well it is known."""
        if self.value is None:
            return "nothing was timed"
        bounds = [("?" if bound is None else f"{bound:.4g}") for bound in (self.low, self.high)]
        counted = f"{self.pairs} pairs" if self.pairs else "not paired"
        return f"{self.value:.4g} times the baseline's ({bounds[0]} to {bounds[1]}, {counted})"


class Compared(Part):
    """A run's speed beside a baseline's."""

    SPEEDS = frozenset({"seconds"})

    baseline: str = Field(description="as it was asked for: a revision, or a record's file")
    identity: str | None = Field(description="the commit, or the SHA-256 of the file; null where it was not found")
    way: Literal["rounds", "sessions", "recorded"] = Field(
        description="short rounds in turns, whole sessions in turns, or rounds beside those of a record"
    )
    width: float = Field(gt=0, lt=1, description="how far apart two speeds may be and still be the same, as a share")
    error: float | None = Field(
        gt=0, lt=1, description="probability of a false alarm over all metrics of the session; null: nobody knows it"
    )
    metrics_of_session: int = Field(ge=1, description="among which that probability is shared")
    budget_seconds: float | None = None
    seconds: float | None = None
    loadings: int = Field(default=0, ge=0, description="how often both sides were loaded")
    loadings_needed: int = Field(default=1, ge=1, description="how many must say that a metric differs")
    base_first: tuple[bool, ...] = Field(default=(), description="of each pair, by a coin")
    ratios: tuple[Ratio, ...] = ()
    differences: tuple[str, ...] = Field(default=(), description="between the two sides, each in a sentence")
    lacking: str | None = Field(default=None, description="why there is nothing to compare with")
    new: str | None = Field(default=None, description="that the baseline does not support it: nothing can be slower")
    problems: tuple[str, ...] = Field(default=(), description="why it could not be compared")


def _outcome_within(bounds: Bounds, width: float) -> Outcome:
    low, high = bounds
    return outcome_of(-math.inf if low is None else math.log(low), math.inf if high is None else math.log(high), width)


def outcome_of(low: float, high: float, width: float) -> Outcome:
    """The outcome for a logarithm of a ratio between two bounds, maybe infinite: all of it must lie within `width` of
    equal, or on one side beyond that.

    `width` reaches as far either way: half as fast is as far from equal as twice as fast.
    """
    bound = -math.log1p(-width)
    if high < -bound:
        return Outcome.REGRESSION
    if low > bound:
        return Outcome.IMPROVEMENT
    return Outcome.SAME if -bound < low and high < bound else Outcome.AMBIGUOUS


def judge_compared(compared: Compared | None, width: float | None) -> Verdict:
    """The verdict on a comparison: PASS where there is none.

    Args:
        compared: the comparison. Of a case that is new nothing can have become slower.
        width: how far apart two speeds may be and still be the same, by another's word than the comparison's.
    """
    if compared is None or (compared.new and not compared.problems):
        return Verdict(kind=VerdictKind.PASS)
    if width is not None and width != compared.width:
        outcomes = [ratio.outcome_at(width, compared.loadings_needed) for ratio in compared.ratios]
        ratios = [one.model_copy(update={"outcome": its}) for one, its in zip(compared.ratios, outcomes, strict=True)]
        compared = compared.model_copy(update={"width": width, "ratios": tuple(ratios)})
    beside = f"beside {compared.baseline}"
    stages = [
        (VerdictKind.ERROR, [f"{beside}: {problem}" for problem in compared.problems]),
        (VerdictKind.INSUFFICIENT, [f"{beside}: {compared.lacking}"] if compared.lacking else []),
        (VerdictKind.ERROR, [] if compared.ratios else [f"{beside}: no metric was compared"]),
        (VerdictKind.FAIL_PERF, _reasons(compared, Outcome.REGRESSION, "is slower")),
        (VerdictKind.AMBIGUOUS, _reasons(compared, Outcome.AMBIGUOUS, "may be slower or not")),
    ]
    complaints = (Verdict(kind=kind, reasons=tuple(reasons)) for kind, reasons in stages if reasons)
    return next(complaints, Verdict(kind=VerdictKind.PASS))


def _reasons(compared: Compared, outcome: Outcome, predicate: str) -> list[str]:
    beside, same = f"beside {compared.baseline}", f"{compared.width:.1%} is the same"
    found = [ratio for ratio in compared.ratios if ratio.outcome is outcome]
    return [f"{beside} {ratio.metric} {predicate}: {ratio.text}; up to {same}" for ratio in found]


def compared_figures(compared: Compared | None, labels: Sequence[Figure]) -> Iterator[Figure]:
    """A figure for each metric that was compared, called by the record's own figures."""
    if compared is None:
        return
    names = {figure.key: figure.label for figure in labels}
    for ratio in compared.ratios:
        text = f"{ratio.outcome}: {ratio.text}"
        known: dict[str, Any] = {"reason": text} if ratio.value is None else {"value": text}
        label = f"{names.get(ratio.metric, ratio.metric)} compared"
        yield Figure(key=f"compared_{ratio.metric}", label=label, unit="text", kind=FigureKind.SPEED, **known)
    for number, sentence in enumerate([*compared.differences, *filter(None, (compared.lacking, compared.new))], 1):
        yield Figure(
            key=f"compared_note_{number}", label="comparison", unit="text", kind=FigureKind.FACT, value=sentence
        )
