"""The two sides in turns, pair after pair, until the answer is clear or the budget is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from proofmark.gate.decision import Pairs, Policy, Rates
from proofmark.record.compared import Outcome, Ratio

DIFFERENT = (Outcome.REGRESSION, Outcome.IMPROVEMENT)


class Side(Protocol):
    """One version of a case, ready to be timed."""

    def rates(self) -> Rates:
        """Time it once more.

        Raises:
            SideLost: it is not there any more, or said no rates.
        """


class SideLost(Exception):
    """A side can't be timed; the text is a sentence that says which and why."""


Load = Callable[[], AbstractContextManager[tuple[Side, Side]]]
"""Both sides, base and head, loaded anew; they end with the context. Raises SideLost."""


@dataclass
class Raced:
    """What came of it."""

    ratios: tuple[Ratio, ...] = ()
    base_first: list[bool] = field(default_factory=list)
    loadings: int = 0
    loading_seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Race:
    """How two sides are compared.

    Attributes:
        metrics: that both sides must tell of.
        policy: what is asked of an answer.
        seconds: the budget, spent by loading too.
        clock: seconds, monotonic.
        coin: whether the base comes first in the next pair. It must be fair and nobody may foresee it.
        tell: gets the number of pairs so far.
    """

    metrics: Sequence[str]
    policy: Policy
    seconds: float
    clock: Callable[[], float]
    coin: Callable[[], bool]
    tell: Callable[[int], None] = lambda pairs: None

    def run(self, load: Load) -> Raced:
        """Compare. What two processes of one program differ by, such as where their memory lies, no pair shows: before
        there is an alarm, both sides are loaded anew, and must say the same again. Half of the time is kept for it."""
        raced, begun = Raced(), self.clock()
        halfway, deadline = begun + self.seconds / 2, begun + self.seconds
        pairs = self._timed(load, self.metrics, raced, lambda pairs: halfway if pairs.alarming else deadline)
        raced.ratios = pairs.ratios()
        alarming = [ratio.metric for ratio in raced.ratios if ratio.outcome in DIFFERENT]
        if alarming and not raced.problems:
            loading = raced.loading_seconds
            again = Pairs(alarming, self.policy)
            if self.clock() + loading < deadline:
                again = self._timed(load, alarming, raced, lambda _: deadline)
            raced.ratios = _agreed(pairs, again.ratios())
        return raced

    def _timed(self, load: Load, metrics: Sequence[str], raced: Raced, until: Callable[[Pairs], float]) -> Pairs:
        """All pairs of one loading."""
        pairs, begun = Pairs(metrics, self.policy), self.clock()
        try:
            with load() as (base, head):
                raced.loadings += 1
                raced.loading_seconds = self.clock() - begun
                while not pairs.clear and self.clock() < until(pairs):
                    base_first = self.coin()
                    one, other = (base, head) if base_first else (head, base)
                    rates = one.rates(), other.rates()
                    pairs.add(*(rates if base_first else rates[::-1]))
                    raced.base_first.append(base_first)
                    self.tell(len(raced.base_first))
        except (SideLost, ValueError) as lost:
            after = f" after {len(raced.base_first)} pairs" if raced.base_first else ""
            raced.problems.append(f"{lost}{after}")
        return pairs


def _agreed(first: Pairs, again: Sequence[Ratio]) -> tuple[Ratio, ...]:
    """A metric differs if it does in both loadings; the smaller of the two differences is told, with all pairs."""
    found = {ratio.metric: ratio for ratio in again}
    return tuple(_settled(ratio, found.get(ratio.metric)) for ratio in first.ratios())


def _settled(first: Ratio, second: Ratio | None) -> Ratio:
    if second is None:
        return first
    both = {"loadings": ((first.low, first.high), (second.low, second.high))}
    if not second.pairs or first.value is None or second.value is None:
        return first.model_copy(update={"outcome": Outcome.AMBIGUOUS, **both})
    nearer = min(first, second, key=lambda ratio: abs(math.log(ratio.value or 1.0)))
    outcome = first.outcome if first.outcome is second.outcome else Outcome.AMBIGUOUS
    pairs = {"pairs": first.pairs + second.pairs, "base": first.base + second.base, "head": first.head + second.head}
    return nearer.model_copy(update={"outcome": outcome, **pairs, **both})
