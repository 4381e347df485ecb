"""The hyper-parameters' study: one for all trials, by Optuna's tree-structured Parzen estimator, maximising accuracy.

Its storage is Optuna's own journal of JSON lines. What the search's journal says goes before it: a result that it has
and the study has not, because the driver died in between, is told to the study again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from proofmark.automl.search.estimator import Estimator
from proofmark.automl.search.journal import cut_torn_line
from proofmark.errors import UsageError, harmless

if TYPE_CHECKING:
    import optuna

FILE = "study.jsonl"

NAME = "hyper-parameters"

LOCKED = ".lock"
"""What Optuna adds to the name of the file while it writes; it waits 30 s for who left one behind."""


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
        direction: Literal["maximize", "minimize"] = "maximize" if sign > 0 else "minimize"
        cut_torn_line(folder / FILE)
        path = str(folder / FILE)
        Path(f"{path}{LOCKED}").unlink(missing_ok=True)  # of a driver that died: the journal's lock is ours
        try:
            storage = JournalStorage(JournalFileBackend(path, lock_obj=JournalFileOpenLock(path)))
            self._study = optuna.create_study(
                storage=storage,
                study_name=NAME,
                direction=direction,
                load_if_exists=True,
            )
        except Exception as error:  # noqa: BLE001 (whatever a damaged line leads to)
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UsageError(harmless(f"{path}: no study can be read from it: {told}")) from None
        self._seed = seed
        low, high = (int(bound) for bound in ranges["batch_size"])
        least, most = ranges["dropout"]
        space: dict[str, optuna.distributions.BaseDistribution] = {
            "kernel_size": CategoricalDistribution([int(kernel) for kernel in ranges["kernel_size"]]),
            "batch_size": IntDistribution(low, high),
            "dropout": FloatDistribution(least, most),
        }
        known = self._study.get_trials(deepcopy=False)
        self._estimator, self._asked = Estimator(space, direction, startup, known), len(known)

    def ask(self, trial: int, fixed: Mapping[str, Any] | None) -> tuple[int, dict[str, Any]]:
        """The study's own number for a trial, and its hyper-parameters: the `fixed` ones, else what the study says."""
        number, self._asked = self._asked, self._asked + 1
        asked = self._estimator.ask(number, self._seed * 1_000_003 + trial, fixed)
        self._study.add_trial(asked)
        return number, dict(asked.params)

    def tell(self, number: int, accuracy: float | None) -> None:
        """What came of it, None for a trial that failed. Said twice, the first counts."""
        from optuna.trial import TrialState

        if number in self._estimator.open:
            state = TrialState.FAIL if accuracy is None else None
            self._estimator.tell(self._study.tell(number, accuracy, state=state))
