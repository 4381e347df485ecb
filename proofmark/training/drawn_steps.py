"""Which steps of a training are recorded for the audit: the first ones, and a run of later ones that chance has drawn.

A rank records them, and its agent draws: by the numbers that the agent wrote down, whoever judges knows which steps
must be there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

RUN = 3
"""Consecutive steps that are recorded at a place. A state of the optimizer that was made up to explain one update has
a value or two to choose for each weight: it can't explain three."""

DRAWS = 128
"""Numbers that are drawn for a training: of n steps some ln(n) are used, one for each drawn run."""

NEVER = float(1 << 62)
"""Candidates for the next run beyond which it makes no difference how many they are: a training has fewer steps."""


def draw() -> list[float]:
    """As many numbers above 0, up to 1, as a training may need."""
    chance = random.SystemRandom()
    return [1 - chance.random() for _ in range(DRAWS)]


class DrawnSteps:
    """Asked once for each step, in order. Each later step is about as likely as any other to begin the last run that is
    drawn, however long a training lasts: a new run gives way to the one before (a reservoir sample).

    Attributes:
        begins: whether the step that was asked for last is the first one of a run.
        ends: whether it is the last one of a run.
        first: whether it is of the first run, which is not drawn.
    """

    def __init__(self, chances: Iterable[float], agreed: Callable[[float], float] = lambda number: number) -> None:
        """`chances` are as `draw` gives them; `agreed` makes what rank 0 found that of all ranks."""
        self._chances, self._agreed = iter(chances), agreed
        self._left, self._candidates, self._next = RUN, 0, 1.0
        self.begins = self.ends = False
        self.first = True

    def due(self) -> bool:
        """Whether the next step is to be recorded."""
        if not self._left:
            self._candidates += 1
            if self._candidates < self._next:
                return False
            self._left, self.first = RUN, False
            # the n-th candidate gives way to none of the next k with a chance of n / (n + k)
            last = min(self._candidates / next(self._chances, 1e-300), NEVER)
            self._next = self._agreed(last) // 1 + 1
        self.begins, self._left = self._left == RUN, self._left - 1
        self.ends = not self._left
        return True

    def pass_over(self) -> int:
        """Be asked for all steps before the next that is to be recorded, however many; how many those are."""
        passed = 0 if self._left else max(0, int(self._next) - self._candidates - 1)
        self._candidates += passed
        return passed


def recorded_steps(chances: Iterable[float], steps: int) -> list[int]:
    """Numbers, from 1 on, of those that are left of so many steps: the first run, the last whole one that was drawn,
    and one in which training ended. How many steps there were may be a rank's word: they are not counted one by one."""
    drawn, first, whole, last = DrawnSteps(chances), list[int](), list[int](), list[int]()
    step = 0
    while (step := step + drawn.pass_over() + 1) <= steps:
        drawn.due()
        if drawn.first:
            first.append(step)
            continue
        last = [step] if drawn.begins else [*last, step]
        if drawn.ends:
            whole, last = last, []
    return [*first, *whole, *last]
