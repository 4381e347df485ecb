"""The two sides in turns, pair after pair, until the answer is clear or the budget is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from proofmark.gate.decision import Pairs, Rates, StoppingRule
from proofmark.record.compared import DIFFERENT, Ratio

FIRST = 1 / 3
"""Share of the budget after which a first loading that has an alarm leaves the rest to others."""


class Side(Protocol):
    """One version of a case, ready to be timed."""

    def rates(self) -> Rates:
        """Time the side once more.

        Raises:
            SideLost: it is not there any more, or said no rates.
        """


class SideLost(Exception):
    """A side can't be timed; the text is a sentence that says which and why."""


Load = Callable[[], AbstractContextManager[tuple[Side, Side]]]
"""Both sides, base and head, loaded anew; they end with the context. Raises SideLost."""


@dataclass
class Raced:
    """The result of a race."""

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
        rule: what is asked of an answer.
        seconds: the budget, spent by loading too.
        clock: seconds, monotonic.
        coin: whether the base comes first in the next pair. It must be fair and nobody may foresee it.
        tell: gets the number of pairs so far.
        whole_runs: each pair is of processes of its own, so that none is to be loaded again.
    """

    metrics: Sequence[str]
    rule: StoppingRule
    seconds: float
    clock: Callable[[], float]
    coin: Callable[[], bool]
    tell: Callable[[int], None] = lambda pairs: None
    whole_runs: bool = False

    @property
    def needed(self) -> int:
        """How many loadings must say that a metric differs."""
        return 1 if self.whole_runs else self.rule.loadings

    def run(self, load: Load) -> Raced:
        """Compare. What two processes of one program differ by, such as where their memory lies, no pair shows: before
        there is an alarm, both sides are loaded anew, and must say the same again, so often that luck would not."""
        raced, begun = Raced(), self.clock()
        early, deadline = begun + self.seconds * FIRST, begun + self.seconds
        alone = deadline if self.needed == 1 else early
        pairs = self._timed(load, self.metrics, raced, _until(alone, deadline))
        found = {ratio.metric: [ratio] for ratio in pairs.ratios()}
        alarming = [metric for metric, (ratio,) in found.items() if ratio.outcome in DIFFERENT]
        for left in range(self.needed - 1, 0, -1):
            if not alarming or raced.problems:
                break
            again, now = Pairs(alarming, self.rule.afterwards), self.clock()
            if now + raced.loading_seconds < deadline:
                share = now + (deadline - now) / left  # what is clear must not wait for what is not
                again = self._timed(load, alarming, raced, _until(share, deadline))
            for ratio in again.ratios():
                found[ratio.metric].append(ratio)
            alarming = [metric for metric in alarming if found[metric][-1].outcome is found[metric][0].outcome]
        raced.ratios = tuple(_settled(loadings, self.rule.width, self.needed) for loadings in found.values())
        return raced

    def _timed(self, load: Load, metrics: Sequence[str], raced: Raced, until: Callable[[Pairs], float]) -> Pairs:
        """Time all pairs of one loading."""
        pairs, begun = Pairs(metrics, self.rule.afterwards if raced.loadings else self.rule), self.clock()
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


def _until(alarmed: float, deadline: float) -> Callable[[Pairs], float]:
    """When a loading ends: with the budget, or sooner once it has an alarm that others must confirm."""
    return lambda pairs: alarmed if pairs.alarming else deadline


def _settled(loadings: Sequence[Ratio], width: float, needed: int) -> Ratio:
    """A metric differs if it does in as many loadings as are needed; the smallest of the differences is told."""
    ratio, *others = loadings
    if others:
        timed = [each for each in loadings if each.value is not None]
        rates = {side: tuple(rate for each in timed for rate in getattr(each, side)) for side in ("base", "head")}
        ratio = min(timed, key=lambda each: abs(math.log(each.value or 1.0))).model_copy(
            update={
                "pairs": sum(each.pairs for each in timed),
                "loadings": tuple((each.low, each.high) for each in loadings),
                **rates,
            }
        )
    return ratio.model_copy(update={"outcome": ratio.outcome_at(width, needed)})
