"""`python -m benchmarks.gate.loadings`: how often the speed gate raises a false alarm where what two processes of one
program differ by for their whole life scatters, and how often it finds 5 %. Nothing is timed: all of it is drawn.

A loading's ratio of speeds is drawn first: normally, or of two states that either process is in, one a share slower
than the other. Its pairs scatter around that. A pair and a loading take as long as those of `make gate-power` do.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from proofmark.gate.decision import Rates, StoppingRule
from proofmark.gate.race import Race, Side
from proofmark.record.compared import DIFFERENT, Outcome

METRICS = ("core", "whole")
PAIR, LOADING = 0.2, 3.0
"""Seconds."""

SLOWER = ((0.0, 0.0), (0.05, 0.05), (0.1, 0.035))
"""By what share the head is, by metric."""

Law = Callable[[random.Random], float]


def _normal(percent: float) -> Law:
    return lambda chance: chance.gauss(0, percent / 100)


def _two_states(percent: float) -> Law:
    return lambda chance: percent / 100 * (chance.choice((0, 1)) - chance.choice((0, 1)))


LAWS: dict[str, Law] = {
    **{f"normal, {percent} %": _normal(percent) for percent in (0, 1, 2, 3, 4)},
    **{f"two states, {percent} %": _two_states(percent) for percent in (4, 8)},
}
"""Of the logarithm of the ratio of a loading."""


@dataclass
class Drawn:
    """A session's machine: time that passes only in rounds."""

    chance: random.Random
    law: Law
    noise: float
    slower: tuple[float, ...]
    now: float = 0.0
    ratio: float = field(default=0.0, init=False)

    @contextmanager
    def load(self) -> Iterator[tuple[Side, Side]]:
        """Both sides, anew."""
        self.now += LOADING
        self.ratio = self.law(self.chance)
        yield _Side(self, 0.0), _Side(self, 1.0)

    def rates(self, share: float) -> Rates:
        """A round's: both metrics have the loading's ratio, and half of their noise, in common."""
        self.now += PAIR / 2
        common, sd = share * self.ratio + self.chance.gauss(0, self.noise / 2), self.noise / 2
        return {
            name: 100 * (1 - share * slower) * math.exp(common + self.chance.gauss(0, sd))
            for name, slower in zip(METRICS, self.slower, strict=True)
        }


@dataclass
class _Side:
    machine: Drawn
    share: float

    def rates(self) -> Rates:
        return self.machine.rates(self.share)


def session(number: int, law: Law, noise: float, slower: tuple[float, ...], seconds: float) -> list[Outcome]:
    """What came of a session, by metric."""
    chance = random.Random(number)
    machine = Drawn(chance, law, noise, slower)
    rule = StoppingRule(metrics=len(METRICS))
    race = Race(METRICS, rule, seconds, lambda: machine.now, lambda: chance.random() < 0.5)
    return [ratio.outcome for ratio in race.run(machine.load).ratios]


def main() -> None:
    """Print a line for each law, noise of pairs, and slowdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--budget", type=float, default=120.0, metavar="SECONDS", help="of a session (120)")
    given = parser.parse_args()
    for slower in SLOWER:
        for noise in (0.05, 0.1):
            for name, law in LAWS.items():
                found: Counter[str] = Counter()
                for number in range(given.sessions):
                    outcomes = session(number, law, noise, slower, given.budget)
                    found.update([outcomes[0], *(["any alarm"] if {*outcomes} & {*DIFFERENT} else [])])
                shown = ", ".join(
                    f"{kind} {100 * found[kind] / given.sessions:.1f} %" for kind in ("any alarm", *Outcome)
                )
                shares = " and ".join(f"{share:.1%}" for share in slower)
                print(f"{shares} slower, pairs {noise:.0%}, loadings {name:16} {shown}", flush=True)


if __name__ == "__main__":
    main()
