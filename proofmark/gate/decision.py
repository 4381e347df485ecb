"""From pairs of rates to an outcome for each metric. Pure: what was timed, where and when, is another's affair."""

from __future__ import annotations

import math
import statistics
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from proofmark.gate.sequence import median_interval
from proofmark.record.compared import Outcome, Ratio, outcome_of

Rates = Mapping[str, float]
"""Items per second, by metric."""


@dataclass(frozen=True)
class StoppingRule:
    """When a comparison may stop: how sure an answer must be.

    Attributes:
        width: two speeds that lie no further apart are the same, as a share.
        error: probability of a false alarm over all metrics of the session together.
        metrics: how many those are. Bonferroni: each has an equal share of `error`, which holds however they depend on
            each other, and whichever of them are looked at first.
        luck: probability, at most, that a loading of one program on both sides puts a given one of them ahead by more
            than the width for as long as it lasts.
        again: probability that the interval of a loading after the first misses.
    """

    width: float = 0.02
    error: float = 0.01
    metrics: int = 1
    luck: float = 0.25
    again: float = 0.05

    @property
    def share(self) -> float:
        """The probability of a false alarm that one metric may have."""
        return self.error / self.metrics

    @property
    def loadings(self) -> int:
        """How many must agree before there is an alarm: so few are all lucky on one of two sides, or missed."""
        first, later = self.luck + self.share, self.luck + self.again
        return 1 + math.ceil(max(1.0, math.log(self.share / (2 * first)) / math.log(later)))

    @property
    def afterwards(self) -> StoppingRule:
        """The rule for a loading after the first."""
        return replace(self, error=self.again, metrics=1)


@dataclass(frozen=True)
class Estimate:
    """The logarithm of a ratio of speeds, with the interval in which it lies."""

    value: float | None
    low: float
    high: float

    def outcome(self, width: float) -> Outcome:
        """The outcome, where two speeds count as equal if they lie no further apart than `width`, a share."""
        return outcome_of(self.low, self.high, width)


def _estimate(logs: Sequence[float], error: float) -> Estimate:
    return Estimate(statistics.median(logs) if logs else None, *median_interval(logs, error))


class Pairs:
    """All pairs of a case so far. A metric's outcome stands from the first pair after which it is clear."""

    def __init__(self, metrics: Sequence[str], rule: StoppingRule) -> None:
        self._rule = rule
        self._base: dict[str, list[float]] = {metric: [] for metric in metrics}
        self._head: dict[str, list[float]] = {metric: [] for metric in metrics}
        self._logs: dict[str, list[float]] = {metric: [] for metric in metrics}
        """Of the ratios, in rising order."""

        self._clear: dict[str, Ratio] = {}

    @property
    def clear(self) -> bool:
        """Whether every metric has its outcome."""
        return len(self._clear) == len(self._base)

    @property
    def alarming(self) -> bool:
        """Whether one of them differs."""
        return any(ratio.outcome is not Outcome.SAME for ratio in self._clear.values())

    def add(self, base: Rates, head: Rates) -> None:
        """A pair: the rates of both sides.

        Raises:
            ValueError: a side lacks a metric, or a rate of it is none.
        """
        for side, rates in (("base", base), ("head", head)):
            for metric in self._base:
                if not 0 < rates.get(metric, 0.0) < 1e300:
                    raise ValueError(f"{metric} is missing on the {side}'s side: {rates.get(metric)}")
        for metric in self._base:
            self._base[metric].append(base[metric])
            self._head[metric].append(head[metric])
            insort(self._logs[metric], math.log(head[metric] / base[metric]))
            if metric not in self._clear and (ratio := self._ratio(metric)).outcome is not Outcome.AMBIGUOUS:
                self._clear[metric] = ratio

    def ratios(self) -> tuple[Ratio, ...]:
        """The outcome of each metric, with all pairs."""
        found = [self._clear.get(metric) or self._ratio(metric) for metric in self._base]
        return tuple(
            ratio.model_copy(update={"base": tuple(self._base[ratio.metric]), "head": tuple(self._head[ratio.metric])})
            for ratio in found
        )

    def _ratio(self, metric: str) -> Ratio:
        estimate = _estimate(self._logs[metric], self._rule.share)
        return ratio_of(metric, estimate, self._rule.width, len(self._base[metric]))


LARGEST_LOG = 700.0
"""Up to which, and down to minus which, `exp` of a logarithm is a number that a record can hold."""


def ratio_of(metric: str, estimate: Estimate, width: float, pairs: int) -> Ratio:
    """The ratio of a metric, as it is recorded."""
    logs = (estimate.value, estimate.low, estimate.high)
    value, low, high = (math.exp(log) if log is not None and -LARGEST_LOG < log < LARGEST_LOG else None for log in logs)
    return Ratio(metric=metric, outcome=estimate.outcome(width), value=value, low=low, high=high, pairs=pairs)
