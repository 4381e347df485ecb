"""A job by its id, whichever session began it and whatever has become of that session: a handle like its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.errors import UsageError
from proofmark.launch.job import Handle
from proofmark.launch.job_file import AtService, JobFile, Status, find_job, read_job
from proofmark.launch.launchers import ServiceLauncher, find_launcher
from proofmark.launch.service.contract import Service, ServiceError, State, View
from proofmark.launch.service.creation import in_doubt
from proofmark.launch.service.gathering import gather
from proofmark.launch.service.running import RunningJob
from proofmark.launch.service.ticket import home_of
from proofmark.launch.service.transfer import is_home
from proofmark.process.lifetime import end_marked

LEAVING = 15.0
"""Seconds in which a process whose session is gone ends by itself, and tidies up."""

PATIENCE = 60.0
"""Seconds that a session may take to end a job."""

FOLLOWED, ASKED = 0.5, 5.0
"""Seconds between two looks of who follows a job: at what its session keeps here, or at what its service says."""

SHOWN = 60.0
"""Seconds in which a service shows a job that it has created, and lets go of a request whose sender is gone."""


def reattach(index: Path, identifier: str) -> Reattached:
    """The job of that id.

    Raises:
        UsageError: there is none, it is another user's, or its file is damaged; or its service can't be asked.
    """
    return reattached(find_job(index, identifier))


def reattached(file: JobFile) -> Reattached:
    """The handle of the job that a file describes.

    Raises:
        ProofmarkError: it is a service's whose launcher is not there, or lacks what it needs.
    """
    if file.service is None:
        return Reattached(file)
    launcher = find_launcher(file.launcher)
    if not isinstance(launcher, ServiceLauncher):
        raise UsageError(f"job {file.id}: launcher '{file.launcher}' knows no service that could have it")
    return ReattachedAtService(file, launcher.recalled(file.service.settings))


class Reattached(Handle):
    """A job that another session leads. One whose session is gone has ended: hosts let go of what they ran, and leave
    nothing behind, when the pipe to them closes; a process of this machine does so too."""

    @property
    def file(self) -> JobFile:
        """The job's file as last read."""
        return self._file

    @property
    def pace(self) -> float:
        """Seconds between two looks of who follows it."""
        return FOLLOWED

    @property
    def leaves(self) -> Sequence[str]:
        """Patterns of the names of what it leaves at its service."""
        return self._file.service.leaves if self._file.service else ()

    def status(self) -> Status:
        """As its session last noted it, 'lost', or 'unseen'.

        Raises:
            UsageError: its file is there no more, or damaged.
        """
        return self._written()

    def _written(self) -> Status:
        self._file = read_job(self._file.path)
        return self._file.state()

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """All that comes home of a job is here, but for what its own session is about to fetch, or never will."""
        status, hosts = self.status(), ", ".join(self._file.hosts)
        if not hosts or status in ("succeeded", "failed", "stopped"):
            return None
        if status == "lost":
            return f"its session is gone, and with it what had not been fetched from {hosts}"
        return f"its session, {self._leader}, has yet to fetch it from {hosts}"

    @property
    def _leader(self) -> str:
        elsewhere = self._file.state() == "unseen"
        return f"process {self._file.session.pid}" + (f" of host {self._file.host}" if elsewhere else "")

    def stop(self) -> None:
        """Have its session end it, on another host too; without one, end what is left of it on this machine.

        Raises:
            UsageError: its process's number belongs to another now, or is one of another host; or its session does not
                answer.
            OSError: its folder can't be written.
        """
        status, agent = self._written(), self._file.agent
        if status == "unseen" and agent is not None:
            raise UsageError(f"job {self.id} is of host {self._file.host}, and cannot be seen from here: end it there")
        if status in ("running", "unseen"):
            self._file.ask_to_stop()
        if agent is not None and agent.is_anothers():
            raise UsageError(
                f"job {self.id}: its process id {agent.pid} belongs to another process now; nothing was ended"
            )
        own_end = time.monotonic() + (LEAVING if status == "lost" else 0.0)
        while agent is not None and agent.lives() and time.monotonic() < own_end:
            time.sleep(0.1)
        end_marked(self._file.mark or "")
        deadline = time.monotonic() + PATIENCE
        while self._written() in ("running", "unseen"):
            if time.monotonic() > deadline:
                raise UsageError(f"job {self.id}: its session, {self._leader}, has not ended it")
            time.sleep(0.1)

    def facts(self) -> dict[str, Any]:
        """Which hosts it has or had, by name."""
        return {"hosts": [{"name": host} for host in self._file.hosts]}


ENDS: dict[State, Status] = {"succeeded": "succeeded", "failed": "failed", "stopped": "stopped"}


class ReattachedAtService(Reattached):
    """A job that a service runs, whether or not the session that submitted it lives."""

    def __init__(self, file: JobFile, service: Service) -> None:
        super().__init__(file)
        self._service = service
        self._deaf: ServiceError | OSError | None = None

    @property
    def pace(self) -> float:
        """Where its session does not look for it, a service is asked, by all of a project."""
        return FOLLOWED if self._file.session.lives() else ASKED

    def status(self) -> Status:
        """As its session last noted it; if the session is gone, as the service has it. Its logs are fetched too, if
        they can be.

        Raises:
            ServiceError: that can't be asked.
            UsageError: the job's file is there no more, or damaged.
        """
        written = self._written()
        running = self._running() if written in ("lost", "unseen") else None
        if running is None:
            return written
        view = running.look()
        self._hear(running, view)
        if not view.ended:
            return "running"
        self._file = self._file.end(ENDS[view.state])
        return self._file.status

    def logs(self, since: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
        """What was added to each of its logs.

        Raises:
            ServiceError: when it was last looked at, they could not be had.
            OSError: one can't be written, or read.
        """
        if self._deaf is not None:
            raise self._deaf
        return super().logs(since)

    def _hear(self, running: RunningJob, view: View) -> None:
        """Add to its logs. What a job's state is, and that it has ended, does not hang on them."""
        try:
            running.sync_logs(view)
            self._deaf = None
        except (ServiceError, OSError) as error:
            self._deaf = error

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """What its nodes left; what is wrong with the first of them that has not come home.

        Raises:
            ServiceError: it or its results can't be asked for.
            OSError: they can't be written here.
        """
        if self._written() in ("running", "succeeded") and self._file.session.lives():
            if self._file.status == "running" and not self._file.hosts:
                return f"its session, {self._leader}, has yet to hand it over"
            return super().fetch(leaves)
        if self._is_home(leaves):
            return None
        if (running := self._running()) is None:
            return "its service has no such job"
        view = running.look()
        if not view.ended:
            return f"job {running.id} is {view.phase}: what it leaves can be had when it has ended"
        self._file = self._file.end(ENDS[view.state])
        places = self._service.places(running.at.name, "")
        brought = gather(running, view, places.results, running.at.nodes, leaves).brought
        self._hear(running, view)
        return next(iter(brought.wrong.values()), None if self._deaf is None else str(self._deaf))

    def stop(self) -> None:
        """Have its session end it; if that is gone, has given it up, did not see it end or does not answer, have the
        service do so.

        Raises:
            ServiceError: it can't be ended, or the service can't be asked.
            UsageError: whether there is such a job is in doubt, or its session, which is to submit it, does not answer.
        """
        silent = None
        if self._written() == "running":
            try:
                super().stop()
            except UsageError as error:  # it hangs, or looks but rarely
                silent = error
        if self._written() in ("succeeded", "stopped"):
            return
        if (running := self._running()) is None:
            if silent:
                raise silent
            if self._file.ended is None and (at := self._file.service):
                self._settle(at)
            return
        view = running.look()
        if not view.ended:
            view = running.end()
        self._hear(running, view)
        self._file = self._file.end(ENDS[view.state])

    def _settle(self, at: AtService) -> None:
        """Write a job as ended down that its service does not have, where it was known to be lost a minute ago.

        Raises:
            UsageError: it was not, or its session is of another host, and may be about to submit it.
        """
        file, is_lost = self._file, self._file.state() == "lost"
        if is_lost and file.status == "lost" and file.seconds_since_noted() > SHOWN:
            self._file = file.end("failed")
            return
        if is_lost and file.status != "lost":
            self._file = file.note(status="lost")
        raise UsageError(f"job {self.id}: {in_doubt(at.name)}; nothing was ended: ask again in a minute")

    def _is_home(self, leaves: Sequence[str]) -> bool:
        """Whether all that its nodes left is here: it may be there no more."""
        at = self._file.service
        homes = [home_of(node, self._service.servers is not None) for node in range(at.nodes)] if at else []
        return at is not None and is_home(Path(self._file.directory), at.name, homes, leaves)

    def _running(self) -> RunningJob | None:
        """The job by its id, or else its name; None where it was never created."""
        at = self._file.service
        if at is not None and at.id is None:
            at = at.model_copy(update={"id": self._service.find(at.name)})
        return None if at is None or at.id is None else RunningJob(self._service, at, Path(self._file.directory))
