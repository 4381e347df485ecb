"""The hyper-parameters' study: one for all trials, by Optuna's tree-structured Parzen estimator, maximising accuracy.

Its storage is Optuna's own journal of JSON lines, of which a search of many trials has several: Optuna holds in memory
what a file has. What the search's journal says goes before it: a result that it has and the study has not, because the
driver died in between, is told to the study again.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from proofmark.automl.search.estimator import Estimator
from proofmark.automl.search.journal import cut_torn_line
from proofmark.errors import UsageError, harmless

if TYPE_CHECKING:
    import optuna

FILE = "study.jsonl"
"""The first of its files; `study.1.jsonl` is the second."""

MOST = 10_000
"""Trials of one of them."""

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
            UsageError: a file of it is damaged.
        """
        import optuna
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._direction: Literal["maximize", "minimize"] = "maximize" if sign > 0 else "minimize"
        self._folder, self._seed = folder, seed
        low, high = (int(bound) for bound in ranges["batch_size"])
        least, most = ranges["dropout"]
        space: dict[str, optuna.distributions.BaseDistribution] = {
            "kernel_size": CategoricalDistribution([int(kernel) for kernel in ranges["kernel_size"]]),
            "batch_size": IntDistribution(low, high),
            "dropout": FloatDistribution(least, most),
        }
        self._asked, self._begins = 0, list[int]()
        self._files, self._open = dict[int, optuna.Study](), dict[int, set[int]]()
        self._estimator = Estimator(space, self._direction, startup, self._read())

    def ask(self, trial: int, fixed: Mapping[str, Any] | None) -> tuple[int, dict[str, Any]]:
        """The study's own number for a trial, and its hyper-parameters: the `fixed` ones, else what the study says."""
        number = self._asked
        asked = self._estimator.ask(number, self._seed * 1_000_003 + trial, fixed)
        if number - self._begins[-1] >= MOST:
            self._begin()
        last = len(self._begins) - 1
        self._files[last].add_trial(asked)
        self._open[last].add(number)
        self._asked += 1
        return number, dict(asked.params)

    def tell(self, number: int, accuracy: float | None) -> None:
        """What came of it, None for a trial that failed. Said twice, the first counts."""
        from optuna.trial import TrialState

        file = bisect_right(self._begins, number) - 1
        if number not in self._open.get(file, ()):
            return
        state = TrialState.FAIL if accuracy is None else None
        told = self._files[file].tell(number - self._begins[file], accuracy, state=state)
        self._estimator.tell(number, told)
        self._open[file].remove(number)
        self._forget(file)

    def _read(self) -> Iterator[tuple[int, optuna.trial.FrozenTrial]]:
        """All trials so far, file by file."""
        while not self._begins or self._path(len(self._begins)).exists():
            file, begins = len(self._begins), self._asked
            self._begin()
            for own, trial in enumerate(self._files[file].get_trials(deepcopy=False)):
                if not trial.state.is_finished():
                    self._open[file].add(begins + own)
                self._asked += 1
                yield begins + own, trial

    def _begin(self) -> None:
        """Open the next file."""
        file = len(self._begins)
        self._files[file], self._open[file] = self._opened(self._path(file)), set()
        self._begins.append(self._asked)
        self._forget(file - 1)

    def _forget(self, file: int) -> None:
        """Whatever nothing more is to be written to."""
        if file < len(self._begins) - 1 and not self._open.get(file):
            self._files.pop(file, None)
            self._open.pop(file, None)

    def _path(self, file: int) -> Path:
        return self._folder / (FILE if not file else f"study.{file}.jsonl")

    def _opened(self, path: Path) -> optuna.Study:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        class Backend(JournalFileBackend):
            """Writes without waiting for the disk: what is lost is told again. The journal's lock is for this too."""

            def append_logs(self, logs: list[dict[str, Any]]) -> None:
                with path.open("ab") as stream:
                    stream.write("".join(f"{json.dumps(log, separators=(',', ':'))}\n" for log in logs).encode())

        cut_torn_line(path)
        try:
            storage = JournalStorage(Backend(str(path)))
            return optuna.create_study(storage=storage, study_name=NAME, direction=self._direction, load_if_exists=True)
        except Exception as error:  # noqa: BLE001 (whatever a damaged line leads to)
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UsageError(harmless(f"{path}: no study can be read from it: {told}")) from None
