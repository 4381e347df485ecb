"""The hyper-parameters' study: one for all trials, by Optuna's tree-structured Parzen estimator, maximising accuracy.

Its storage is Optuna's own journal of JSON lines. What the search's journal says goes before it: a result that it has
and the study has not, because the driver died in between, is told to the study again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.errors import UsageError, harmless

if TYPE_CHECKING:
    import optuna

FILE = "study.jsonl"

NAME = "hyper-parameters"


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
        path = str(folder / FILE)
        try:
            storage = JournalStorage(JournalFileBackend(path, lock_obj=JournalFileOpenLock(path)))
            self._study = optuna.create_study(
                storage=storage,
                study_name=NAME,
                direction="maximize" if sign > 0 else "minimize",
                load_if_exists=True,
            )
        except Exception as error:  # noqa: BLE001 (whatever a damaged line leads to)
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UsageError(harmless(f"{path}: no study can be read from it: {told}")) from None
        self._seed, self._startup = seed, startup
        low, high = (int(bound) for bound in ranges["batch_size"])
        least, most = ranges["dropout"]
        self._space: dict[str, optuna.distributions.BaseDistribution] = {
            "kernel_size": CategoricalDistribution([int(kernel) for kernel in ranges["kernel_size"]]),
            "batch_size": IntDistribution(low, high),
            "dropout": FloatDistribution(least, most),
        }

    def ask(self, trial: int, fixed: Mapping[str, Any] | None) -> tuple[int, dict[str, Any]]:
        """The study's own number for a trial, and its hyper-parameters: the `fixed` ones, else what the study says."""
        from optuna.samplers import TPESampler

        self._study.sampler = TPESampler(seed=self._seed * 1_000_003 + trial, n_startup_trials=self._startup)
        if fixed is not None:
            self._study.enqueue_trial(dict(fixed))
        asked = self._study.ask(self._space)
        return asked.number, dict(asked.params)

    def tell(self, number: int, accuracy: float | None) -> None:
        """What came of it, None for a trial that failed. Said twice, the first counts."""
        from optuna.trial import TrialState

        if any(
            trial.number == number and trial.state.is_finished() for trial in self._study.get_trials(deepcopy=False)
        ):
            return
        if accuracy is None:
            self._study.tell(number, state=TrialState.FAIL)
        else:
            self._study.tell(number, accuracy)
