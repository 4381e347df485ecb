"""Optuna's tree-structured Parzen estimator over a bounded number of a study's results, so that its cost is bounded.

It is kept in memory. Once it has grown too large it is rebuilt from the best results, the last ones, and those last
asked for that have no result yet; these count as bad, so that they are not asked for again.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import TPESampler
    from optuna.trial import FrozenTrial

MOST = 100
"""Results that are remembered: the best half and the last ones."""


class Estimator:
    """Chooses the hyper-parameters to try next, to maximise a trial's value.

    Args:
        startup: results before which it draws at random.
        known: trials of an earlier time by their numbers, with or without a result, in their order.
    """

    def __init__(
        self,
        space: Mapping[str, BaseDistribution],
        startup: int,
        known: Iterable[tuple[int, FrozenTrial]],
    ) -> None:
        self._space, self._startup = dict(space), startup
        self._best: list[tuple[float, int, FrozenTrial]] = []
        self._last: deque[tuple[int, FrozenTrial]] = deque(maxlen=MOST // 2)
        self.open: dict[int, FrozenTrial] = {}
        self._sampler: TPESampler | None = None
        for number, trial in known:
            if trial.state.is_finished():
                self._remember(number, trial)
            else:
                self.open[number] = trial
        self._begin_anew()

    def results(self) -> dict[int, FrozenTrial]:
        """The results that are remembered, by number."""
        best = {-negative: trial for _, negative, trial in self._best}
        return dict(sorted((best | dict(self._last)).items()))

    def ask(self, number: int, seed: int, fixed: Mapping[str, Any] | None) -> FrozenTrial:
        """The trial of that number: with the fixed values, else with those that the estimator chooses."""
        import optuna

        if len(self._places) > 2 * MOST:
            self._begin_anew()
        values = fixed
        if values is None:
            if self._sampler is None:  # one for all asks: it learns the space anew of every trial
                self._sampler = optuna.samplers.TPESampler(
                    seed=seed % 2**32, n_startup_trials=self._startup, constant_liar=True
                )
                self._study.sampler = self._sampler
            values = self._study.ask(self._space).params
        running = optuna.trial.TrialState.RUNNING
        trial = optuna.trial.create_trial(state=running, params=dict(values), distributions=self._space)
        if fixed is not None:
            self._study.add_trial(trial)
        self._places[number] = len(self._places)
        self.open[number] = trial
        return trial

    def tell(self, number: int, trial: FrozenTrial) -> None:
        """Note the result of the trial with that number, which was asked for; it has no value if it failed."""
        import optuna

        del self.open[number]
        place = self._places.get(number)
        if place is not None:
            state = optuna.trial.TrialState.FAIL if trial.value is None else None
            self._study.tell(place, trial.value, state=state)
        elif trial.value is not None:
            self._add(number, trial)
        self._remember(number, trial)

    def _remember(self, number: int, trial: FrozenTrial) -> None:
        if trial.value is None:
            return
        self._last.append((number, trial))
        keep = heapq.heappush if len(self._best) < MOST // 2 else heapq.heappushpop
        keep(self._best, (trial.value, -number, trial))

    def _begin_anew(self) -> None:
        import optuna

        self._study, self._sampler = optuna.create_study(direction="maximize"), None
        self._places: dict[int, int] = {}
        for number, trial in (*self.results().items(), *list(self.open.items())[-MOST // 2 :]):
            self._add(number, trial)

    def _add(self, number: int, trial: FrozenTrial) -> None:
        self._study.add_trial(trial)
        self._places[number] = len(self._places)
