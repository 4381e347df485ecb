"""The hyper-parameters' study: one for all trials, by Optuna's tree-structured Parzen estimator, maximising accuracy.

Its storage is Optuna's own journal of JSON lines. What the search's journal says goes before it: a result that it has
and the study has not, because the driver died in between, is told to the study again. The estimator rests on some of
the results, so that it takes no longer after 100,000 trials than after `MOST`.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from proofmark.automl.search.journal import cut_torn_line
from proofmark.errors import UsageError, harmless

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

FILE = "study.jsonl"

NAME = "hyper-parameters"

LOCKED = ".lock"
"""What Optuna adds to the name of the file while it writes; it waits 30 s for who left one behind."""

MOST = 300
"""Results that the estimator rests on: the best half and the last ones."""


class Study:
    """What to train with, and how good that was."""

    def __init__(
        self, folder: Path, ranges: Mapping[str, Sequence[float]], seed: int, startup: int = 10, sign: int = 1
    ) -> None:
        """Open the study in a search's folder, or begin one.

        Args:
            ranges: choices of kernel_size, and bounds of batch_size and dropout.
            startup: results before which it draws at random.
            sign: -1 minimises: for a test that shows that it is not indifferent.

        Raises:
            UsageError: its file is damaged.
        """
        import optuna
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._direction: Literal["maximize", "minimize"] = "maximize" if sign > 0 else "minimize"
        self._seed, self._startup, self._sign = seed, startup, sign
        cut_torn_line(folder / FILE)
        path = str(folder / FILE)
        Path(f"{path}{LOCKED}").unlink(missing_ok=True)  # of a driver that died: the journal's lock is ours
        try:
            storage = JournalStorage(JournalFileBackend(path, lock_obj=JournalFileOpenLock(path)))
            self._study = optuna.create_study(
                storage=storage,
                study_name=NAME,
                direction=self._direction,
                load_if_exists=True,
            )
        except Exception as error:  # noqa: BLE001 (whatever a damaged line leads to)
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UsageError(harmless(f"{path}: no study can be read from it: {told}")) from None
        low, high = (int(bound) for bound in ranges["batch_size"])
        least, most = ranges["dropout"]
        self._space: dict[str, optuna.distributions.BaseDistribution] = {
            "kernel_size": CategoricalDistribution([int(kernel) for kernel in ranges["kernel_size"]]),
            "batch_size": IntDistribution(low, high),
            "dropout": FloatDistribution(least, most),
        }
        self._best: list[tuple[float, int, FrozenTrial]] = []
        self._last: deque[FrozenTrial] = deque(maxlen=MOST // 2)
        self._open: dict[int, FrozenTrial] = {}
        self._asked = 0
        for trial in self._study.get_trials(deepcopy=False):
            self._asked += 1
            self._open[trial.number] = trial
            if trial.state.is_finished():
                self._close(trial.number, trial)

    def ask(self, trial: int, fixed: Mapping[str, Any] | None) -> tuple[int, dict[str, Any]]:
        """The study's own number for a trial, and its hyper-parameters: the `fixed` ones, else what the study says."""
        from optuna.trial import TrialState, create_trial

        chosen = self._chosen(trial) if fixed is None else dict(fixed)
        asked = create_trial(state=TrialState.RUNNING, params=chosen, distributions=self._space)
        self._study.add_trial(asked)
        number, self._asked = self._asked, self._asked + 1
        self._open[number] = asked
        return number, chosen

    def tell(self, number: int, accuracy: float | None) -> None:
        """What came of it, None for a trial that failed. Said twice, the first counts."""
        from optuna.trial import TrialState

        if number in self._open:
            state = TrialState.FAIL if accuracy is None else None
            self._close(number, self._study.tell(number, accuracy, state=state))

    def _chosen(self, trial: int) -> dict[str, Any]:
        """By the estimator, which knows the best results, the last ones, and what was asked for and is not told yet."""
        import optuna

        sampler = optuna.samplers.TPESampler(seed=self._seed * 1_000_003 + trial, n_startup_trials=self._startup)
        study = optuna.create_study(direction=self._direction, sampler=sampler)
        results = {each.number: each for each in (*self._last, *(each for _, _, each in self._best))}
        pending = list(self._open.values())[-MOST // 2 :]
        study.add_trials([*(results[number] for number in sorted(results)), *pending])
        return dict(study.ask(self._space).params)

    def _close(self, number: int, trial: FrozenTrial) -> None:
        """Remember a result as long as it is one of the best or one of the last."""
        del self._open[number]
        if trial.value is None:
            return
        self._last.append(trial)
        keep = heapq.heappush if len(self._best) < MOST // 2 else heapq.heappushpop
        keep(self._best, (self._sign * trial.value, -number, trial))
