"""Weights on the disk: of trials that networks may still be made of, and of no others.

Networks are made of the best trials and the last ones (`best_and_last`). Who is neither never becomes it again: better
ones stay better, and later ones later. But networks that were made of it before may wait for their trials, and those
may run, or be run again by another driver.
"""

from __future__ import annotations

import contextlib
import heapq
from collections import Counter, deque
from pathlib import Path

from proofmark.automl.pool import MOST
from proofmark.automl.search.ahead import SHARING
from proofmark.automl.search.state import State, Trial
from proofmark.automl.trial.spec import MOMENTUM, WEIGHTS


class KeptWeights:
    """The weights in a search's folder, deleted once no network can be derived from them any more.

    Args:
        state: what the search has come to before.
        places: trials at a time.
    """

    def __init__(self, folder: Path, state: State, places: int) -> None:
        self._folder = folder
        self._waiting = 2 * (1 + places // SHARING) + 1  # made ahead, left of an annealing, and the one made ready
        self._best: list[tuple[float, int, int]] = []
        self._last = deque[int]()
        self._top: tuple[float, int] | None = None
        self._there = dict[int, Trial]()
        self._held, self._leaving = Counter[int](), deque[tuple[int, int]]()
        self._begun, self._finished = len(state.trials), 0
        for trial in state.over:
            self._take(trial)
        for trial in state.open():
            self._hold(trial)

    def begun(self, trial: Trial) -> None:
        """A trial was begun, maybe once more."""
        self._begun = max(self._begun, trial.number + 1)
        if trial.attempt == 1:
            self._hold(trial)

    def ended(self, trial: Trial) -> None:
        """A trial has ended: delete what is needed no longer."""
        if trial.parent is not None:
            self._release(trial.parent)
        self._take(trial)
        while self._leaving and self._leaving[0][0] + self._waiting <= self._begun:
            _, number = self._leaving.popleft()
            if number not in self._held and number in self._there:
                self._delete(self._there.pop(number))

    def _hold(self, child: Trial) -> None:
        if child.parent is not None:
            self._held[child.parent] += 1

    def _release(self, number: int) -> None:
        self._held[number] -= 1
        if not self._held[number]:
            del self._held[number]
            self._leaving.append((self._begun, number))

    def _take(self, trial: Trial) -> None:
        """Into the pool, which one or two then leave; a failed one has no children."""
        if trial.accuracy is None:
            self._delete(trial)
            return
        self._finished += 1
        self._there[trial.number] = trial
        self._held[trial.number] += 2
        self._last.append(trial.number)
        heapq.heappush(self._best, (trial.accuracy, -self._finished, trial.number))
        rank = (trial.accuracy, -trial.number)  # of equals the first to begin is judged, not the first to end
        if self._top is None or rank > self._top:
            self._held[trial.number] += 1
            if self._top is not None:
                self._release(-self._top[1])
            self._top = rank
        if len(self._last) > MOST:
            self._release(self._last.popleft())
        if len(self._best) > MOST // 2:
            self._release(heapq.heappop(self._best)[2])

    def _delete(self, trial: Trial) -> None:
        for name in (WEIGHTS, MOMENTUM):
            with contextlib.suppress(OSError):  # what a network's file system has lost hold of is not worth a search
                (trial.left(self._folder) / name).unlink()
