"""One job at a service: code sent, job created, followed, ended, its results gathered."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proofmark.errors import UsageError
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.hosts.request import DescribeRequest
from proofmark.launch.job import Handle, HostLayout, Job
from proofmark.launch.job_file import AtService, JobFile, Status
from proofmark.launch.service.contract import Ended, Places, Service, ServiceError, View
from proofmark.launch.service.creation import LAST_LOOK, Creation, in_doubt, name_for
from proofmark.launch.service.gathering import Gathered, gather
from proofmark.launch.service.patience import Patience, Stopped
from proofmark.launch.service.running import ENDING, RunningJob
from proofmark.launch.service.ticket import CACHE, CODE, MASTER, RUN, Ticket
from proofmark.launch.service.transfer import send
from proofmark.process import wall_clock


@dataclass(frozen=True)
class ServiceSetup:
    """How a session's jobs get to a service; `launcher` is its name, for a job's file."""

    launcher: str
    service: Service
    code: CodeTree
    packages: tuple[str, ...]
    described: DescribeRequest


class HandingOver:
    """The back end: a service takes the whole job."""

    def __init__(self, setup: ServiceSetup) -> None:
        self._setup = setup

    def submit(self, job: Job) -> ServiceHandle:
        """Begin, and return at once.

        Raises:
            UsageError: it is no job that runs without a word from here.
            OSError: its directory can't be written.
        """
        if job.held:
            raise UsageError(f"--launcher {self._setup.launcher} takes whole jobs only; {job.name} is run from here")
        for node in range(job.nnodes):
            job.node_directory(node)
        return ServiceHandle(self._setup, job)


class ServiceHandle(Handle):
    """A job at a service. A thread leads it; all others read the state that it keeps."""

    def __init__(self, setup: ServiceSetup, job: Job) -> None:
        self._setup, self._job, self._service = setup, job, setup.service
        at = AtService(
            name=name_for(job.name),
            nodes=self._service.servers or job.nnodes,
            leaves=tuple(job.leaves),
            settings=self._service.settings,
        )
        super().__init__(JobFile.begin(job.index, job.name, setup.launcher, job.directory, service=at))
        self._at, self._submitted = at, wall_clock.now()
        self._stop = threading.Event()
        self._patience = Patience(self._service.timing, self._stop)
        self._status: Status = "running"
        self._facts: dict[str, Any] = {}
        self._lost: list[dict[str, Any]] = []
        self._deaf = set[type[Exception]]()
        self._may_run = False
        self._thread = threading.Thread(target=self._lead, daemon=True)
        try:
            self._thread.start()
        except BaseException:  # an interrupt: nobody has it to end it
            self._stop.set()
            raise

    def status(self) -> Status:
        """The status that the leading thread has noted."""
        return self._status

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """All that a node left has come home with its logs."""
        return None

    def stop(self) -> None:
        """End the job, and wait until it has ended. If it has not, that is told among what was lost, with how to end
        it."""
        self._stop.set()
        began = time.monotonic()
        try:
            self._thread.join(2 * ENDING)
        finally:  # who interrupts that has to know, too
            if self._thread.is_alive():
                self._abandon(time.monotonic() - began)

    def _abandon(self, waited: float) -> None:
        left = f"job {self._called} has not ended in {waited:.0f} s; {self._way_out}"
        self._warn(self._not_home if self._at.id and not self._may_run else left)

    def facts(self) -> dict[str, Any]:
        """Of each node what it said of itself; the nodes that were lost; what the service's own results say."""
        return {**self._facts, "lost": self._lost[:]}

    @property
    def _called(self) -> str:
        return self._at.id or self._at.name

    @property
    def _way_out(self) -> str:
        return f"`python -m proofmark.jobs stop {self._file.id}` ends what may be left of it"

    @property
    def _way_home(self) -> str:
        return f"`python -m proofmark.jobs fetch {self._file.id}` brings home what it left"

    @property
    def _not_home(self) -> str:
        return f"job {self._called} has ended, and not all of its results were here; {self._way_home}"

    def _lead(self) -> None:
        """Its end is written down only if nothing of it can run any more: whoever finds it lost asks the service."""
        status: Status = "failed"
        try:
            status = self._run()
        except Stopped:
            if self._at.id:  # while its results came home; else before there was a job
                self._warn(self._not_home)
        except Exception as error:  # noqa: BLE001 (it would be lost)
            self._lose(None, _text_of(error))
        if self._may_run:
            doubt = "" if self._at.id else f" ({in_doubt(self._at.name)})"
            self._warn(f"job {self._called} may still run{doubt}: {self._way_out}")
        self._file = self._file.note(status="lost") if self._may_run else self._file.end(status)
        self._status = status

    def _lose(self, node: int | None, why: str) -> None:
        self._lost.append({"node": node, "reason": why})

    def _warn(self, why: str) -> None:
        """Lose the whole job, and say so at once: where the user has interrupted it, no verdict will."""
        self._lose(None, why)
        self._news.append(f"WARNING {why}")

    def _run(self) -> Status:
        setup, service = self._setup, self._service
        places = service.places(self._at.name, setup.code.sha256)
        self._news += service.notes
        self._news.append(f"sends code and configuration to {places.code}")
        send(service.store, self._patience, places, setup.code, service.boot, self._ticket())
        self._heed()
        self._at = self._at.model_copy(update={"id": self._created(places)})
        self._file = self._file.note(service=self._at, hosts=(f"job {self._at.id}",))
        running = RunningJob(service, self._at, self._job.directory, self._stop)
        try:
            view = self._follow(running)
        except Stopped:
            pass
        except Exception as error:  # noqa: BLE001 (whatever it is, the job must not run on)
            self._lose(None, _text_of(error))
        else:
            return self._gather(running, view, places)
        self._leave(running, places)
        return "failed"

    def _created(self, places: Places) -> str:
        creation = Creation(self._service, self._at, places)
        self._may_run = True
        try:
            return creation.ask(self._patience)
        except (ServiceError, Stopped):
            self._may_run = creation.in_doubt
            raise

    def _heed(self) -> None:
        """Go no further if it was asked to stop.

        Raises:
            Stopped: it was.
        """
        if self._file.is_asked_to_stop():
            self._lose(None, f"job {self._file.id} was stopped by its id")
            raise Stopped
        if self._stop.is_set():
            raise Stopped

    def _follow(self, running: RunningJob) -> View:
        """Until the service has ended it."""
        shown, patience = "", running.patience
        while True:
            view = self._look(running, known=bool(shown))
            if view.phase != shown:
                self._news.append(f"job {running.id}: {view.phase}")
                shown = view.phase
                patience.hurry()
            self._may_run = not view.ended
            self._hear(running, view, patient=view.ended)
            if view.ended:
                return view
            waited = wall_clock.now() - self._submitted
            if view.state == "waiting" and waited > self._service.timing.queue:
                raise ServiceError(f"job {running.id} is still {view.phase} after {waited:.0f} s in the queue")
            self._heed()
            patience.look_again()

    def _look(self, running: RunningJob, known: bool) -> View:
        """How it is. A `known` job runs on while its service can't say so, and to end it then would lose what was paid
        for: it is asked for until it must have ended by itself. One that nobody has seen may be shown a little late."""
        began, patient = time.monotonic(), True
        while True:
            try:
                return running.look(patient)
            except ServiceError as error:
                vain, life = time.monotonic() - began, self._service.timing.life
                late = not known and not error.transient and vain < LAST_LOOK
                if not late and (not (known and error.transient) or vain > life):
                    raise
                if patient and not late:
                    until = f"it is asked for, for up to {life / 3600:g} h"
                    self._news.append(f"WARNING job {running.id}: {error}; it may well run on, and {until}")
                    patient = False
            self._heed()
            running.patience.look_again()

    def _hear(self, running: RunningJob, view: View, patient: bool = False) -> None:
        """Add to its nodes' logs. They are for people, so nothing that is wrong with them ends a job. Each kind of it
        is told once, in time for somebody to make room on the disk, say; the next look tries again."""
        try:
            running.sync_logs(view, patient)
        except (ServiceError, OSError) as error:
            if type(error) not in self._deaf:
                self._deaf.add(type(error))
                self._news.append(f"WARNING the log of job {running.id} can't be had: {_text_of(error)}")

    def _leave(self, running: RunningJob, places: Places) -> None:
        """End the job, and keep what there is of it."""
        after = RunningJob(self._service, self._at, self._job.directory)
        try:
            view = after.end()
        except ServiceError as error:
            self._warn(f"job {running.id} could not be ended: {error}")
            return
        self._may_run = False
        self._news.append(f"job {running.id}: {view.phase}")
        self._hear(after, view)
        with contextlib.suppress(ServiceError, OSError):
            self._take(gather(after, view, places.results, self._at.nodes, self._job.leaves))

    def _gather(self, running: RunningJob, view: View, places: Places) -> Status:
        """What a job that has ended left: all of it, or the run has failed."""
        try:
            gathered = gather(running, view, places.results, self._at.nodes, self._job.leaves)
        except (ServiceError, OSError) as error:
            self._lose(None, f"{_text_of(error)}; job {running.id} has ended ({view.phase}): {self._way_home}")
            return "failed"
        self._take(gathered)
        for node, why in gathered.lost(running, view):
            self._lose(node, why)
        if view.state != "succeeded" or self._lost:
            return "failed"
        ended = self._ended(gathered, view)
        try:
            concluded = running.patience.ask(lambda: self._service.conclude(ended))
        except (ServiceError, OSError) as error:
            self._lose(None, f"{_text_of(error)}; what the nodes of job {running.id} left is here all the same")
            return "failed"
        self._facts = {**self._facts, **concluded}
        return "succeeded"

    def _ended(self, gathered: Gathered, view: View) -> Ended:
        scale = self._setup.described.scale
        return Ended(
            at=self._at,
            view=view,
            folder=self._job.directory,
            nodes=self._at.nodes,
            nproc=scale.nproc if scale else 1,
            submitted=self._submitted,
            brought=wall_clock.now(),
            listed=gathered.brought.others,
        )

    def _take(self, gathered: Gathered) -> None:
        self._facts = {**self._facts, **gathered.facts()}

    def _ticket(self) -> Ticket:
        job, independent = self._job, self._service.servers is not None
        master = (MASTER, self._service.master_port) if job.nnodes > 1 else None
        return Ticket(
            name=self._at.name,
            module=job.module,
            spec=job.spec.moved(HostLayout(RUN, CODE, CACHE, master)).text(),
            leaves=tuple(job.leaves),
            nodes=self._at.nodes,
            independent=independent,
            packages=self._setup.packages,
            described=self._setup.described,
            environment=dict(self._service.environment),
        )


def _text_of(error: Exception) -> str:
    return str(error) if isinstance(error, ServiceError) else f"{type(error).__name__}: {error}"
