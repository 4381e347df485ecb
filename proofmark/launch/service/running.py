"""A job that a service has, whoever submitted it: looked at, its logs followed, ended by its id, brought home."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from proofmark.launch.job_file import AtService
from proofmark.launch.service.contract import LOG_PIECE, Service, ServiceError, Task, Timing, View
from proofmark.launch.service.patience import Patience
from proofmark.launch.service.ticket import home_of
from proofmark.launch.service.transfer import Brought, Results

LOGS = "log"
"""The folder of a run that the service's own logs come to."""

ENDING = 60.0
"""Seconds that a job may take to end once that was asked for."""

LAST_LINES = 3
"""Of a log, in a message."""

TAIL = 4096


class RunningJob:
    """One job, by the id that its service gave it, and the folder of its run."""

    def __init__(self, service: Service, at: AtService, folder: Path, stop: threading.Event | None = None) -> None:
        """Take it; waiting ends with Stopped once `stop` is set."""
        assert at.id is not None, "a job without an id is none yet"
        self.service, self.at, self.id, self.folder = service, at, at.id, folder
        self.patience = Patience(service.timing, stop)
        self._brief = Patience(Timing(service.timing.poll, 0.0), stop)

    def look(self, patient: bool = True) -> View:
        """How it is; unless `patient`, its service is asked no more than twice.

        Raises:
            ServiceError: that can't be said, for now if it is `transient`.
        """
        return (self.patience if patient else self._brief).ask(lambda: self.service.look(self.id))

    def sync_logs(self, view: View, patient: bool = False) -> None:
        """Add what is new of each task's log to its file. Unless `patient`, what can't be had now is left for the next
        time.

        Raises:
            ServiceError: it can't be had.
            OSError: it can't be written here.
        """
        patience = self.patience if patient else self._brief
        for task in view.tasks:
            path = self.log(task)
            path.parent.mkdir(exist_ok=True)
            with path.open("ab") as stream:
                while True:
                    part = patience.ask(partial(self.service.log, self.at, task, stream.tell()))
                    stream.seek(part.begins)
                    stream.truncate()
                    stream.write(part.content)
                    if len(part.content) < LOG_PIECE:
                        break

    def log(self, task: Task) -> Path:
        """Where a task's log is kept."""
        return self.folder / LOGS / self.service.log_name(self.at, task)

    def last_lines(self, task: Task) -> str:
        """What a task said last, in one line."""
        path = self.log(task)
        said = _tail(path).decode("utf-8", "replace") if path.exists() else ""
        return " | ".join([line.strip() for line in said.splitlines() if line.strip()][-LAST_LINES:])

    def end(self) -> View:
        """Have it ended, once, and wait until it has.

        Raises:
            ServiceError: it can't be, or does not end.
        """
        patience = Patience(Timing(self.service.timing.poll, ENDING))
        patience.ask(lambda: self.service.stop(self.id))
        deadline = time.monotonic() + ENDING
        while not (view := patience.ask(lambda: self.service.look(self.id))).ended:
            if time.monotonic() > deadline:
                raise ServiceError(f"job {self.id} is still {view.phase}, {ENDING:.0f} s after it should have ended")
            patience.look_again()
        return view

    def bring_home(self, view: View, prefix: str, nodes: int, leaves: Sequence[str]) -> Brought:
        """All that its nodes left."""
        independent = self.service.servers is not None
        homes = [home_of(node, independent) for node in range(nodes)]
        results = Results(self.service.store, self.patience, prefix, self.at.name, view.created)
        return results.bring_home(homes, leaves, self.folder)


def _tail(path: Path) -> bytes:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - TAIL))
        return stream.read(TAIL)
