"""The driver: gives each free device the next trial, and records how it ended, until the search is over.

While trials train, the next network is generated, and the process that will train it makes itself ready: it has loaded
its data and built its network when a device becomes free. A parent is always a finished trial. Whatever is decided
stands in the journal before it is done: a driver that is killed is followed by another, which runs those trials again
that have no end, and no others.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofmark.automl.logs.event_types import GAVE_UP, NO_DEVICE, gave_up
from proofmark.automl.search.ahead import SHARING, Ahead, Made, Networks
from proofmark.automl.search.journal import Journal
from proofmark.automl.search.running import MODULE, TrialProcess, longest_of
from proofmark.automl.search.settings import FAILURES, SearchSettings
from proofmark.automl.search.state import State, Trial
from proofmark.automl.search.study import Study
from proofmark.automl.search.upcoming import MakeSpec, Ready, Upcoming
from proofmark.automl.search.weights import KeptWeights
from proofmark.launch.job import Launcher
from proofmark.record.events.log import Event

LOOK = 0.05
"""Seconds between two looks at the trials."""

NOTED = 60.0
"""Seconds between two notes in the journal that the search goes on: of a driver that is killed no more is forgotten."""

EVERY, SHARE = 1.0, 0.02
"""Seconds between two tellings of progress; more where telling would take more than that share of the time."""


@dataclass(frozen=True)
class Progress:
    """How far a search has come; `lost` are devices that it uses no more."""

    seconds: float
    running: int
    done: int
    failed: int
    most: int
    state: State
    open_epochs: Mapping[int, list[dict[str, Any]]]
    lost: int = 0


@dataclass(frozen=True, eq=False)
class _Running:
    """A trial that was begun on a device."""

    trial: Trial
    process: TrialProcess
    device: int


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
        self._journal, self._settings, self._networks = journal, settings, networks
        self._study, self._tell = study, tell
        self._upcoming = Upcoming(folder, settings, networks, study, launcher, make_spec, module)
        self._state = State.of(journal.events)
        self._weights = KeptWeights(folder, self._state, len(settings.environments))
        self._before = self._state.seconds
        self._again = self._state.open()
        self._running, self._lost = list[_Running](), dict[int, str]()
        self._ready: Ready | None = None
        self._ahead = Ahead(1 + len(settings.environments) // SHARING)
        self._end: str | None = None
        self._row = list[Event]()
        self._longest = max((0.0, *map(_longest_epoch, self._state.over)))
        self._tell_at, self._noted = 0.0, self._before
        study.restore(self._state.trials.values())

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to search. Where an earlier driver gave up there is."""
        return self._state.ended is not None and not gave_up(self._state.ended)

    def take_over(self, host: Mapping[str, Any], config_hash: str, conditions: str | None = None) -> None:
        """Note in the journal of a search that is over that what follows is by this machine's clock, not by an earlier
        one's. Args: as of `run`.

        Raises:
            OSError: the journal can't be written.
        """
        self._announce(host, config_hash, conditions)
        self._journal.write("search_end", reason=self._state.ended)

    def _announce(self, host: Mapping[str, Any], config_hash: str, conditions: str | None) -> None:
        found = {"devices": self._settings.devices, "places": len(self._settings.environments), "host": dict(host)}
        found |= {} if conditions is None else {"conditions": conditions}
        self._journal.write("driver_begin", config_hash=config_hash, **found)

    def run(self, host: Mapping[str, Any], config_hash: str, conditions: str | None = None) -> State:
        """Search until it is over; trials that run when something goes wrong are ended, and have no end in the journal.

        Args:
            host: this machine.
            config_hash: of the configuration.
            conditions: a digest of all that its session is run with.

        Raises:
            OSError: the journal or a trial's folder can't be written.
            ProofmarkError: a network can't be generated.
        """
        if self.is_over:
            return self._state
        self._begun = time.perf_counter_ns()
        self._announce(host, config_hash, conditions)
        try:
            while not self._over():
                self._fill()
                self._collect()
                self._fill()
                self._generate()
                self._make_ready()
                self._tell_now_and_then()
                self._note_now_and_then()
                time.sleep(LOOK)
        finally:
            self._close()
        reason = self._end or "all trials have ended"
        self._journal.write("search_end", reason=reason)
        self._state.seconds, self._state.ended = self._seconds, reason
        self._state.drivers += 1
        return self._state

    def _close(self) -> None:
        """End all that runs, whatever goes wrong with some of it."""
        with contextlib.ExitStack() as last:  # from the last to the first
            last.callback(lambda: self._tell(self._progress()))
            last.callback(self._ahead.close)
            if self._ready is not None:
                last.callback(self._upcoming.let_go, self._ready)
            for running in reversed(self._running):
                last.callback(running.process.stop)

    @property
    def _seconds(self) -> float:
        """Seconds of the whole search so far."""
        return self._before + (time.perf_counter_ns() - self._begun) / 1e9

    def _over(self) -> bool:
        """Whether nothing runs any more, and nothing more is to be begun."""
        return not self._running and not self._may_begin()

    def _may_begin(self) -> bool:
        self._end = self._reason_to_end()
        return self._end is None

    def _reason_to_end(self) -> str | None:
        """Why no more trials are begun, None if more are. The result of a trial that still runs may change the
        answer."""
        settings, state, waiting = self._settings, self._state, bool(self._again or self._ready)
        if len(self._row) >= FAILURES:
            return f"{len(self._row)} {GAVE_UP}, the last one: {self._row[-1]['reason']}"
        if len(self._lost) == len(settings.environments):
            return f"{NO_DEVICE}{self._lost[max(self._lost)]}"
        owed = self._again or (self._ready and self._ready.fields["attempt"] > 1)  # they were begun: each has an end
        if self._seconds >= settings.most_seconds and not owed:
            return f"{settings.most_seconds:g} s are over"
        if not (waiting or self._running) and self._ahead.exhausted(state.parents):
            return "no operation leads to another network"
        if len(state.trials) >= settings.most_trials and not waiting:
            return f"{settings.most_trials} trials were begun"
        return None

    def _collect(self) -> None:
        for running in list(self._running):
            ended = running.process.poll()
            if ended is not None:
                self._running.remove(running)
                if running.process.left:
                    self._lost[running.device] = running.process.left
                event = self._journal.write("trial_end", trial=running.trial.number, **ended)
                trial = running.trial.end(event)
                self._longest = max(self._longest, _longest_epoch(trial))
                self._state.put(trial)
                self._study.tell(trial.study, trial.accuracy)
                self._weights.ended(trial)
                self._count_in_a_row(running, event)

    def _count_in_a_row(self, running: _Running, ended: Event) -> None:
        """Trials that fail one after another end a search; but not one whose time is over, which ends by that.

        What was running by then when the one before failed may have failed of the same: a disk or a driver that stalls
        once takes all devices' trials with it. What no node has run tells nothing of trials as long as others are run.
        """
        if running.process.unplaced and not all(each.process.waits for each in self._running):
            return
        if ended["reason"] is None:
            self._row = []
            return
        another = not self._row or running.trial.begun["clock"] > self._row[-1]["clock"]
        if another and self._seconds < self._settings.most_seconds:
            self._row.append(ended)

    def _fill(self) -> None:
        """Begin a trial on each device that is free, or whose trial has let go of it."""
        busy = {running.device for running in self._running if not self._has_let_go(running)} | self._lost.keys()
        for device in (number for number in range(len(self._settings.environments)) if number not in busy):
            if not self._may_begin():
                return
            ready = self._ready = self._ready or self._next(ahead=False)
            if ready is None:
                return
            trial = Trial(self._journal.write("trial_begin", **ready.fields, device=str(device)))
            self._ready = None
            self._state.put(trial)
            self._weights.begun(trial)
            self._running.append(_Running(trial, ready.process, device))
            left = self._settings.most_seconds - self._seconds
            environment, here = self._settings.environments[device], self._settings.ahead
            ready.process.begin(environment, left, here, self._longest)

    def _has_let_go(self, running: _Running) -> bool:
        """Whether a trial has let go of its device, where another one may be waiting for that."""
        return self._settings.ahead and running.process.has_let_go

    def _make_ready(self) -> None:
        """Prepare the trial that is begun next, where the launcher needs no device for that."""
        if self._settings.ahead and self._ready is None and self._may_begin():
            places = len(self._settings.environments) - len(self._lost)
            self._ready = self._next(ahead=len(self._running) >= places)

    def _next(self, ahead: bool) -> Ready | None:
        """None where there is no network yet. Where the whole first round has failed, seeds are tried again."""
        if self._again:
            return self._upcoming.again(self._state, self._again.pop(0), ahead)
        number = len(self._state.trials)
        of_seed = self._settings.round(number, self._state.round) == 0 or not (self._state.parents or self._running)
        made = Made(None, [], self._networks.seed(number)) if of_seed else self._ahead.take()
        return self._upcoming.new(self._state, made, ahead) if made is not None else None

    def _generate(self) -> None:
        """Begin to generate the next network from all finished trials, if one will be needed; the first round has
        seeds."""
        number, parents = len(self._state.trials), self._state.parents
        later = self._settings.round(number, self._state.round) > 0
        needed = number < self._settings.most_trials and later and not self._end
        leaving = self._settings.ahead and any(each.process.ends for each in self._running)  # its result is to be known
        if not (needed and parents) or leaving or self._ready is not None or self._ahead.childless(parents):
            return
        while self._ahead.idle:
            self._ahead.begin(lambda: self._proposed(number), parents)

    def _proposed(self, number: int) -> Made | None:
        """Runs in the thread that generates, on what is known at that moment."""
        return self._networks.propose(self._state.finished(), self._state.without_result(), number)

    def _tell_now_and_then(self) -> None:
        begun = time.monotonic()
        if begun >= self._tell_at:
            self._tell(self._progress())
            ended = time.monotonic()
            self._tell_at = ended + max(EVERY, (ended - begun) / SHARE)

    def _note_now_and_then(self) -> None:
        if self._seconds - self._noted >= NOTED:
            self._noted = self._seconds
            with contextlib.suppress(OSError):  # a disk that takes no more is told of by what is to be decided next
                self._journal.write("going_on")

    def _progress(self) -> Progress:
        done = self._state.parents
        failed = len(self._state.over) - done
        epochs = dict[int, list[dict[str, Any]]]()
        for running in self._running:
            with contextlib.suppress(OSError):  # what can't be read at the moment is not worth a search
                epochs[running.trial.number] = running.process.epochs()
        now, most, lost = len(self._running), self._settings.most_trials, len(self._lost)
        return Progress(self._seconds, now, done, failed, most, self._state, epochs, lost)


def _longest_epoch(trial: Trial) -> float:
    """Seconds of a trial that has ended: by its own word, but no more than it lasted."""
    assert trial.ended is not None
    lasted: float = (trial.ended["clock"] - trial.begun["clock"]) / 1e9
    return min(longest_of(trial.ended["epochs"]), lasted)
