"""The hyper-parameters' study: one for all trials, by Optuna's tree-structured Parzen estimator, maximising accuracy.

Its storage is Optuna's own journal of JSON lines, of which a search of many trials has several: Optuna holds in memory
what a file has. What the search's journal says goes before it: whatever that has and the study has not, because the
driver died in between or the machine lost what it had not written yet, is taken from it (`Study.restore`).
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.automl.search.estimator import Estimator
from proofmark.automl.search.journal import cut_torn_line
from proofmark.automl.search.state import Trial, hyperparameters
from proofmark.errors import UsageError, harmless, reason

if TYPE_CHECKING:
    import optuna

FILE = "study.jsonl"
"""The first of its files; `study.1.jsonl` is the second."""

MOST = 10_000
"""Trials of one of them; each but the last has so many, so that a trial's number says which file it is in."""

NAME = "hyper-parameters"


class Study:
    """The hyper-parameters of all trials and the accuracy that each came to, kept in the search's folder."""

    def __init__(self, folder: Path, ranges: Mapping[str, Sequence[float]], seed: int, startup: int = 10) -> None:
        """Open the study in a search's folder, or begin one.

        Args:
            ranges: choices of kernel_size, and bounds of batch_size and dropout.
            startup: results before which it draws at random.

        Raises:
            UsageError: a file of it is damaged, or has fewer or more trials than it was left with.
        """
        import optuna
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._folder, self._seed = folder, seed
        low, high = (int(bound) for bound in ranges["batch_size"])
        least, most = ranges["dropout"]
        space: dict[str, optuna.distributions.BaseDistribution] = {
            "kernel_size": CategoricalDistribution([int(kernel) for kernel in ranges["kernel_size"]]),
            "batch_size": IntDistribution(low, high),
            "dropout": FloatDistribution(least, most),
        }
        self._asked = 0
        self._files, self._open = dict[int, optuna.Study](), dict[int, set[int]]()
        try:
            self._estimator = Estimator(space, startup, self._read())
        except (
            OverflowError,
            TypeError,
            ValueError,
        ) as error:  # other hyper-parameters, values that are no number
            raise _unreadable(folder / FILE, error) from None

    def ask(self, trial: int, fixed: Mapping[str, Any] | None) -> tuple[int, dict[str, Any]]:
        """The study's own number for a trial, and its hyper-parameters: the `fixed` ones, else what the study says."""
        asked = self._estimator.ask(self._asked, self._seed * 1_000_003 + trial, fixed)
        return self._add(asked), dict(asked.params)

    def tell(self, number: int, accuracy: float | None) -> None:
        """Note a trial's accuracy, None if it failed. Of two calls for the same number the first counts."""
        from optuna.trial import TrialState

        file, own = divmod(number, MOST)
        if number not in self._open.get(file, ()):
            return
        state = TrialState.FAIL if accuracy is None else None
        stored = self._files[file].tell(own, accuracy, state=state)
        self._estimator.tell(number, stored)
        self._open[file].remove(number)
        self._forget(file)

    def restore(self, trials: Iterable[Trial]) -> None:
        """Make the study agree with the search's journal, before anything more is asked.

        Trials that the study has lost are added again by their numbers, and results that it lacks are told. A number
        that was asked for but that no trial has is marked as failed: its driver died before the trial began.
        """
        import optuna

        known = {trial.study: trial for trial in trials}
        for number in range(self._asked, max(known, default=-1) + 1):
            if number in known:
                self._add(self._estimator.ask(number, self._seed, hyperparameters(known[number])))
            else:
                self._add(optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL))
        for number in sorted(self._estimator.open):
            if number not in known or known[number].over:
                self.tell(number, known[number].accuracy if number in known else None)

    def _add(self, trial: optuna.trial.FrozenTrial) -> int:
        """Write a trial down, as that of the next number."""
        number = self._asked
        file = number // MOST
        if file not in self._files:
            _sync(self._path(file - 1))  # what it would lose from now on would be none of the last trials
            self._begin(file)
        self._files[file].add_trial(trial)
        if not trial.state.is_finished():
            self._open[file].add(number)
        self._asked += 1
        self._forget(file)
        return number

    def _read(self) -> Iterator[tuple[int, optuna.trial.FrozenTrial]]:
        """All trials so far, file by file."""
        file = 0
        while not file or self._path(file).exists():
            self._begin(file)
            trials = self._files[file].get_trials(deepcopy=False)
            self._hold_to_most(file, len(trials))
            self._open[file] = {self._asked + own for own, trial in enumerate(trials) if not trial.state.is_finished()}
            yield from enumerate(trials, self._asked)
            self._asked += len(trials)
            self._forget(file)
            file += 1

    def _hold_to_most(self, file: int, trials: int) -> None:
        following = self._path(file + 1)
        if trials > MOST or (trials < MOST and following.exists()):
            what = f"it has {trials} trials, and must have {MOST} where there is {following.name}, never more"
            raise UsageError(harmless(f"{self._path(file)}: {what}: restore it from a copy, or start a new search"))

    def _begin(self, file: int) -> None:
        """Open a file, made if it is not there."""
        self._files[file], self._open[file] = self._opened(self._path(file)), set()

    def _forget(self, file: int) -> None:
        """Let go of what nothing more is to be written to."""
        if file < self._asked // MOST and not self._open[file]:
            del self._files[file], self._open[file]

    def _path(self, file: int) -> Path:
        return self._folder / (FILE if not file else f"study.{file}.jsonl")

    def _opened(self, path: Path) -> optuna.Study:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        class Backend(JournalFileBackend):
            """Writes without waiting for the disk: what is lost of the last file, and what any was told, the search's
            journal has too. Its lock is for this as well.
            """

            def append_logs(self, logs: list[dict[str, Any]]) -> None:
                lines = "".join(f"{json.dumps(log, separators=(',', ':'))}\n" for log in logs).encode()
                with path.open("ab", buffering=0) as stream:
                    size = os.fstat(stream.fileno()).st_size
                    try:
                        if stream.write(lines) != len(lines):
                            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
                    except OSError:
                        os.ftruncate(stream.fileno(), size)  # what is written next would end half a line
                        raise

        cut_torn_line(path)
        try:
            storage = JournalStorage(Backend(str(path)))
            return optuna.create_study(storage=storage, study_name=NAME, direction="maximize", load_if_exists=True)
        except Exception as error:  # noqa: BLE001 (whatever a damaged line leads to)
            raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> UsageError:
    return UsageError(harmless(f"{path}: no study can be read from it: {reason(error)}"))


def _sync(path: Path) -> None:
    """Wait until a file is on the disk, whoever wrote it."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
