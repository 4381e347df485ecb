"""The driver: gives each free device the next trial, and writes down what comes of it, until the search is over.

While trials train, the next network is generated. A parent is always a finished trial. Whatever is decided stands in
the journal before it is done: a driver that is killed is followed by another, which runs those trials again that have
no end, and no others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from proofmark.automl.search.ahead import SHARING, Ahead, Made, Networks
from proofmark.automl.search.journal import Journal
from proofmark.automl.search.running import MODULE, RunningTrial
from proofmark.automl.search.settings import FAILURES, SearchSettings
from proofmark.automl.search.state import State, Trial
from proofmark.automl.search.study import Study
from proofmark.automl.trial.spec import Parent, TrialSpec
from proofmark.launch.job import Launcher

LOOK = 0.05
"""Seconds between two looks at the trials."""


EVERY, SHARE = 1.0, 0.02
"""Seconds between two tellings of progress; more where telling would take more than that share of the time."""


class MakeSpec(Protocol):
    """Makes a trial's spec of what is the search's own business."""

    def __call__(self, directory: Path, **trial: Any) -> TrialSpec:
        """The rest is the session's: vendor, case, configuration."""


@dataclass(frozen=True)
class Progress:
    """Where a search is."""

    seconds: float
    running: int
    done: int
    failed: int
    most: int
    state: State
    open_epochs: Mapping[int, list[dict[str, Any]]]


class Driver:
    """One driver's part of a search."""

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        settings: SearchSettings,
        networks: Networks,
        study: Study,
        launcher: Launcher,
        make_spec: MakeSpec,
        tell: Callable[[Progress], None] = lambda _: None,
        module: str = MODULE,
    ) -> None:
        """Take a search's folder, with all that was written of it so far."""
        self._folder, self._journal, self._settings, self._networks = folder, journal, settings, networks
        self._study, self._launcher, self._make_spec, self._tell, self._module = (
            study,
            launcher,
            make_spec,
            tell,
            module,
        )
        self._state = State.of(journal.events)
        self._before = self._state.seconds
        self._again = self._state.open()
        self._running = list[RunningTrial]()
        self._ahead = Ahead(1 + len(settings.environments) // SHARING)
        self._end: str | None = None
        self._row = [str(trial.ended["reason"]) for trial in reversed(self._state.failed_in_a_row()) if trial.ended]
        self._tell_at = 0.0
        for trial in self._state.over:
            study.tell(trial.begun["study"], trial.accuracy)

    def run(self, host: Mapping[str, Any], config_hash: str) -> State:
        """Search until it is over; trials that run when something goes wrong are ended, and have no end in the journal.

        Raises:
            OSError: the journal or a trial's folder can't be written.
            ProofmarkError: a network can't be generated.
        """
        if self._state.ended is not None:
            return self._state
        self._begun = time.perf_counter_ns()
        devices = len(self._settings.environments)
        self._journal.write("driver_begin", config_hash=config_hash, devices=devices, host=dict(host))
        try:
            while not self._over():
                self._collect()
                self._fill()
                self._generate()
                self._tell_now_and_then()
                time.sleep(LOOK)
        finally:
            for running in self._running:
                running.stop()
            self._ahead.close()
            self._tell(self._progress())
        self._journal.write("search_end", reason=self._end or "all trials have ended")
        self._state = State.of(self._journal.events)
        return self._state

    @property
    def _seconds(self) -> float:
        """Of the whole search."""
        return self._before + (time.perf_counter_ns() - self._begun) / 1e9

    def _over(self) -> bool:
        """Whether nothing runs any more, and nothing more is to be begun."""
        return not self._running and not self._may_begin()

    def _may_begin(self) -> bool:
        settings, state = self._settings, self._state
        if len(self._row) >= FAILURES:
            self._end = f"{len(self._row)} trials in a row have failed, the last one: {self._row[-1]}"
        elif self._seconds >= settings.most_seconds:
            self._end = f"{settings.most_seconds:g} s are over"
        elif self._ahead.exhausted and not self._again:
            self._end = "no operation leads to another network"
        elif len(state.trials) >= settings.most_trials and not self._again:
            self._end = f"{settings.most_trials} trials were begun"
        else:
            return True
        return False

    def _collect(self) -> None:
        for running in list(self._running):
            ended = running.poll()
            if ended is not None:
                self._running.remove(running)
                event = self._journal.write("trial_end", trial=running.number, **ended)
                trial = Trial(running.trial.begun, event)
                self._state.put(trial)
                self._study.tell(trial.begun["study"], trial.accuracy)
                self._row = [*self._row, str(ended["reason"])] if ended["reason"] else []

    def _fill(self) -> None:
        busy = {running.device for running in self._running}
        for device in (number for number in range(len(self._settings.environments)) if number not in busy):
            if not self._may_begin():
                return
            trial = self._repeated(device) if self._again else self._next(device)
            if trial is None:
                return
            self._state.put(trial)
            self._start(trial, device)

    def _repeated(self, device: int) -> Trial:
        """A trial that an earlier driver began and did not see the end of."""
        begun = self._again.pop(0).begun
        fields = {key: value for key, value in begun.items() if key not in ("event", "time", "clock", "previous")}
        return Trial(
            self._journal.write("trial_begin", **fields | {"attempt": begun["attempt"] + 1, "device": str(device)})
        )

    def _next(self, device: int) -> Trial | None:
        number, settings = len(self._state.trials), self._settings
        made = Made(None, [], self._networks.seed(number)) if settings.round(number) == 0 else self._ahead.take()
        if made is None:
            return None
        sampled = settings.round(number) >= settings.study_from
        asked, chosen = self._study.ask(number, None if sampled else self._inherited(made.parent))
        graph = self._networks.settled(made.graph, chosen)
        return Trial(
            self._journal.write(
                "trial_begin",
                trial=number,
                round=settings.round(number),
                attempt=1,
                parent=made.parent,
                operations=made.operations,
                graph=graph,
                per_image=self._networks.per_image(graph),
                hyperparameters=chosen,
                study=asked,
                sampled=sampled,
                epochs=settings.epochs_of(number),
                seed=settings.seed + number,
                generated_seconds=made.seconds,
                device=str(device),
            )
        )

    def _inherited(self, parent: int | None) -> dict[str, Any]:
        """Hyper-parameters of a trial that the study does not choose for: its parent's."""
        own = self._state.trials[parent].begun["hyperparameters"] if parent is not None else self._settings.defaults
        return dict(own)

    def _start(self, trial: Trial, device: int) -> None:
        directory = self._folder / trial.folder
        directory.mkdir(parents=True, exist_ok=True)
        begun, settings = trial.begun, self._settings
        left = settings.most_seconds - self._seconds
        spec = self._make_spec(
            directory,
            trial=trial.number,
            graph=begun["graph"],
            parent=self._parent(begun["parent"], begun["operations"]),
            hyperparameters=begun["hyperparameters"],
            epochs=begun["epochs"],
            patience=settings.patience,
            seed=begun["seed"],
            environment=dict(settings.environments[device]),
            deadline=time.perf_counter_ns() + round(left * 1e9),
        )
        self._running.append(
            RunningTrial(trial, spec, self._launcher, device, settings.hang, settings.setup, self._module)
        )

    def _parent(self, number: int | None, operations: list[dict[str, Any]]) -> Parent | None:
        if number is None:
            return None
        parent = self._state.trials[number]
        return Parent(parent.begun["graph"], operations, str(parent.left(self._folder)))

    def _generate(self) -> None:
        """Make the next network, if one is needed that is none of the first round's."""
        number = len(self._state.trials)
        needed = number < self._settings.most_trials and self._settings.round(number) > 0 and not self._end
        finished = self._state.finished() if needed and self._ahead.idle else ()
        taken = self._state.without_result() if finished else ()
        while finished and self._ahead.idle:
            self._ahead.begin(lambda: self._networks.propose(finished, taken, number))

    def _tell_now_and_then(self) -> None:
        begun = time.monotonic()
        if begun >= self._tell_at:
            self._tell(self._progress())
            ended = time.monotonic()
            self._tell_at = ended + max(EVERY, (ended - begun) / SHARE)

    def _progress(self) -> Progress:
        done = len(self._state.finished())
        failed = len(self._state.over) - done
        epochs = {running.number: running.epochs() for running in self._running}
        return Progress(
            self._seconds, len(self._running), done, failed, self._settings.most_trials, self._state, epochs
        )
