"""The two sides in turns, pair after pair, until the answer is clear or the budget is spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from proofmark.gate.decision import Pairs, Policy, Rates
from proofmark.record.compared import Outcome, Ratio


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
        there is an alarm, both sides are loaded anew, and must say the same again."""
        raced, deadline = Raced(), self.clock() + self.seconds
        first = self._loaded(load, deadline, raced)
        if first is None:
            return raced
        raced.ratios = first.ratios()
        if first.alarming and not raced.problems:
            second = self._loaded(load, deadline, raced)
            raced.ratios = _agreed(first, second.ratios() if second else ())
        return raced

    def _loaded(self, load: Load, deadline: float, raced: Raced) -> Pairs | None:
        """All pairs of one loading; None where it has none."""
        pairs: Pairs | None = None
        try:
            with load() as (base, head):
                raced.loadings += 1
                pairs = Pairs(self.metrics, self.policy)
                while not pairs.clear and self.clock() < deadline:
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
    """A metric differs if it does in both loadings; the smaller difference of the two is told, with all pairs."""
    found = {ratio.metric: ratio for ratio in again}
    return tuple(_settled(ratio, found.get(ratio.metric)) for ratio in first.ratios())


def _settled(first: Ratio, second: Ratio | None) -> Ratio:
    if second is None or first.outcome is Outcome.SAME:
        alarm = first.outcome in (Outcome.REGRESSION, Outcome.IMPROVEMENT)
        return first.model_copy(update={"outcome": Outcome.AMBIGUOUS}) if alarm else first
    nearer = min(first, second, key=lambda ratio: abs((ratio.value or 1.0) - 1))
    outcome = first.outcome if first.outcome is second.outcome else Outcome.AMBIGUOUS
    return nearer.model_copy(
        update={
            "outcome": outcome,
            "pairs": first.pairs + second.pairs,
            "base": first.base + second.base,
            "head": first.head + second.head,
        }
    )
