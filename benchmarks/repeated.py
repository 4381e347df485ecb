"""What sessions printed that `make repeat` ran, and what it says of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proofmark.measuring.statistics import rate
from proofmark.rules.case_file import NOISE

WITHIN = 0.05
"""How far from the median of the quiet passes a figure may lie, as a share."""

HONEST = {"PASS", "AMBIGUOUS", "ERROR"}

Hand = Callable[[float], float]
"""Has such a loop run for at least so many seconds of compute: items per second."""


@dataclass(frozen=True)
class Loops:
    """Rounds of the hand-written loop: all their rates, and whether those of one attempt kept together."""

    rates: tuple[float, ...]
    steady: bool

    @classmethod
    def timed(cls, loop: Hand, rounds: int, seconds: float, repetitions: int) -> Loops:
        """As a session's: anew where they scatter, as often as those are."""
        rates: list[float] = []
        for _ in range(1 + repetitions):
            these = [loop(seconds) for _ in range(rounds)]
            rates += these
            noise = rate(these, [1.0] * rounds).noise
            if noise is not None and noise <= NOISE:
                return cls(tuple(rates), True)
        return cls(tuple(rates), False)


@dataclass(frozen=True)
class Result:
    """One session of one case: its verdict, and the core throughput that it printed or would have.

    Attributes:
        pace: of the machine, products per second right before.
        before: items per second of the hand-written loop.
        after: the same, as the session was measured.
    """

    case: str
    busy: bool
    kind: str
    core: float | None
    pace: float
    before: float
    after: Loops

    @property
    def hand(self) -> list[float]:
        """Where the hand-written loop was."""
        return [self.before, *self.after.rates]


def shown(result: Result) -> Result:
    """The same, once its line is printed."""
    core = f"{result.core:10.4g}" if result.core is not None else f"{'-':>10}"
    after = " ".join(f"{each:.4g}" for each in result.after.rates)
    hand = f"by hand {result.before:.4g} before, {after} after{'' if result.after.steady else ': unsteady'}"
    pace = f"{core}   {result.kind:10} the machine's own speed: {result.pace:.0f}, {hand}"
    print(f"{result.case:18} {'busy' if result.busy else 'quiet':6} {pace}", flush=True)
    return result


@dataclass(frozen=True)
class Medians:
    """Of a case's quiet runs: the core throughput of those that passed, and the hand-written loop's."""

    core: float | None
    hand: float

    @classmethod
    def of(cls, quiet: Sequence[Result]) -> Medians:
        """They are there before anything is judged by them."""
        passed = [result.core for result in quiet if result.kind == "PASS" and result.core]
        hands = [hand for result in quiet for hand in result.hand]
        return cls(statistics.median(passed) if passed else None, statistics.median(hands))

    def core_of(self, result: Result) -> float | None:
        """Its core throughput over the median, if it passed."""
        return result.core / self.core if result.kind == "PASS" and result.core and self.core else None

    def is_beside(self, result: Result) -> bool:
        """Whether it passed with a figure that is not the median's."""
        ratio = self.core_of(result)
        return ratio is not None and abs(ratio - 1) > WITHIN

    def is_explained(self, result: Result) -> bool:
        """Whether such a figure lies where the loop was."""
        ratio, hands = self.core_of(result), [hand / self.hand for hand in result.hand]
        return ratio is not None and min(hands) * (1 - WITHIN) <= ratio <= max(hands) * (1 + WITHIN)


def judge(results: list[Result]) -> int:
    """The table of what was printed against the median of the quiet passes; 1 where a figure lies beside it."""
    wrong = 0
    titles = f"{'core of PASS':18} {'by hand, over medians':22} {'beside':>6} {'of these with the loop':>22}"
    print(f"\n{'case':18} {'':6} {'PASS':>5} {'AMBIGUOUS':>10} {'other':>6}   {titles}")
    for case in dict.fromkeys(result.case for result in results):
        medians = Medians.of([result for result in results if result.case == case and not result.busy])
        for busy in (False, True):
            these = [result for result in results if result.case == case and result.busy == busy]
            count = [sum(r.kind == kind for r in these) for kind in ("PASS", "AMBIGUOUS")]
            beside = [result for result in these if medians.is_beside(result)]
            explained = sum(map(medians.is_explained, beside))
            wrong += len(beside) - explained + sum(r.kind not in HONEST for r in these)
            cores = [ratio for r in these if (ratio := medians.core_of(r)) is not None]
            hands = [hand / medians.hand for r in these for hand in r.hand]
            row = f"{count[0]:5} {count[1]:10} {len(these) - sum(count):6}   {_range(cores):18} {_range(hands):22}"
            print(f"{case:18} {'busy' if busy else 'quiet':6} {row} {len(beside):6} {explained:22}")
    quiet = [result for result in results if not result.busy]
    paces = [result.pace for result in quiet]
    print(f"the machine's own speed before the quiet runs: {min(paces) / max(paces):.3f} to 1 of its best")
    ambiguous, unsteady = sum(r.kind == "AMBIGUOUS" for r in quiet), sum(not r.after.steady for r in quiet)
    share = (ambiguous - unsteady) / len(quiet)
    print(f"quiet runs that were AMBIGUOUS: {ambiguous} of {len(quiet)}; loops by hand as unsteady: {unsteady}")
    print(f"figures that were wrong: {wrong}")
    return 1 if wrong or share > 1 / 20 else 0


def _range(ratios: list[float]) -> str:
    return f"{min(ratios):.3f} to {max(ratios):.3f}" if ratios else "none"
