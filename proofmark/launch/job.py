"""Starting a job's agents on hosts, and ending them by identity on every way out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from proofmark.launch.engine_container import EngineContainer
from proofmark.launch.far_end.caches import DROP_CACHES, drop_caches
from proofmark.launch.job_file import JobFile, Status
from proofmark.process.child import Child
from proofmark.process.warm.modules import warm_up

S = TypeVar("S", bound="Spec")

SPEC = "spec.json"
"""What a job's specification is called in its directory, while its agent runs here."""


@dataclass(frozen=True)
class HostLayout:
    """Where things lie on a host, and node 0's address and port, None for a single node; and what engines are put into
    there, if they alone are to be in containers."""

    directory: str
    code: str
    cache_dir: str
    master: tuple[str, int] | None
    engine_container: EngineContainer | None = None


class Spec(Protocol):
    """What a job's agents need to know: plain values, saved as a file."""

    def save(self, path: Path) -> None:
        """Write the specification to a file."""

    def text(self) -> str:
        """What `save` writes."""

    def moved(self: S, layout: HostLayout) -> S:
        """The same job where things lie elsewhere."""


ENDING = 60.0
"""Seconds in which agents end that have nothing left to do but that."""


@dataclass(frozen=True)
class Job:
    """One agent per node: `python -m MODULE SPEC NODE`.

    Attributes:
        name: of what it is a run, for people.
        spec: its `directory` is `directory`.
        directory: on this machine; what node i leaves lies in `noderank<i>`, its agent's output in `agent.log` there.
        leaves: patterns of the names that its agents' and ranks' logs have; those come home while it runs.
        sys_path: where this machine's Python finds the module.
        results: patterns of what they leave beside, which a launcher of tasks brings home with their end.
        beats: files of theirs that are renewed in place, which it brings home as they are.
        brings: files that they read, by name: where a launcher moves the spec, they lie in `brought` of its directory.
        begins: what its hosts do when all are ready, for people.
        index: the folder in which it is remembered, None for nowhere.
        imports: modules that its processes need; on this machine, all jobs of a session share their import.
        environment: what that import may look at: part of its agents' own.
        ending: seconds that its other nodes get to end well after one has: ranks end together.
        held: keep the hosts when all agents have ended, so that files can be fetched, until it is stopped.
    """

    name: str
    module: str
    spec: Spec
    directory: Path
    leaves: Sequence[str]
    nnodes: int = 1
    sys_path: Sequence[str] = ()
    index: Path | None = None
    imports: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    held: bool = False
    results: Sequence[str] = ()
    beats: Sequence[str] = ()
    brings: Mapping[str, Path] = field(default_factory=dict)
    begins: str = "ranks start"
    ending: float = ENDING

    def node_directory(self, node: int) -> Path:
        """Where a node's files are kept, made if it is not there."""
        directory = self.directory / f"noderank{node}"
        directory.mkdir(parents=True, exist_ok=True)
        return directory


class Handle(ABC):
    """A job that was submitted.

    Attributes:
        clock_ahead: seconds by which its host's monotonic clock is ahead of this machine's.
        waits: whether nobody runs it yet, or at the moment.
        silent: whether its host is not heard at the moment, and is waited for.
        anew: whether it was run again, and what its first run had left is gone.
    """

    clock_ahead = 0.0
    waits = silent = anew = False

    @property
    def left(self) -> str:
        """What is added to the reason for which it was stopped, where some of it goes on though it was killed."""
        return ""

    def __init__(self, file: JobFile) -> None:
        """Take the job that a file describes."""
        self._file = file
        self._news: list[str] = []

    @property
    def id(self) -> str:
        """The id by which others know it, on this machine."""
        return self._file.id

    @abstractmethod
    def status(self) -> Status:
        """Whether any node still runs, and if not, whether all succeeded."""

    def logs(self, since: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
        """What was added to each of its logs beyond a position, by the log's path in the job's folder.

        Raises:
            OSError: one can't be read.
        """
        return self._file.logs(since)

    def news(self) -> list[str]:
        """What a user waits for and has not been told yet, such as a place in a queue."""
        news = self._news[:]
        del self._news[: len(news)]  # a thread may add to it meanwhile
        return news

    def tell(self, line: str) -> None:  # noqa: B027 (who only looks has nothing to say)
        """Write a line to each agent's standard input; nothing to do where it reads no more."""

    @abstractmethod
    def fetch(self, leaves: Sequence[str]) -> str | None:
        """Bring home files and folders of those names that a held job, whose agents have ended, left beside its logs.

        Returns what went wrong.
        """

    @abstractmethod
    def stop(self) -> None:
        """End all of it; nothing to do for a job that has ended."""

    def facts(self) -> dict[str, Any]:
        """What is known of the hosts when all has ended; `lost` are the nodes that did not live to see it, and why."""
        return {}


class Launcher(Protocol):
    """A way to start jobs."""

    def submit(self, job: Job) -> Handle:
        """Start a job.

        Raises:
            OSError: its directory can't be written.
        """


class LocalLauncher:
    """This machine, without anything between."""

    def __init__(self, clear_caches: bool = False) -> None:
        """`clear_caches` has the kernel drop its caches before each job, where this user may."""
        self._clear_caches = clear_caches

    def submit(self, job: Job) -> LocalHandle:
        """Start one process group; it ends when its standard input closes, so with this process."""
        return LocalHandle(job, caches_cleared_here() if self._clear_caches else None)


class CachesCleared(NamedTuple):
    """Whether the kernel has dropped its caches, or else why not."""

    cleared: bool
    reason: str | None = None

    @property
    def warning(self) -> str | None:
        """What a user is told, if anything."""
        return f"WARNING caches are not cleared (CLEAR_CACHES): {self.reason}" if self.reason else None


def caches_cleared_here() -> CachesCleared:
    """Have this machine's kernel drop its caches. That only root may is no reason to measure nothing."""
    try:
        drop_caches()
    except OSError as error:
        return CachesCleared(False, f"{DROP_CACHES}: {error.strerror}")
    return CachesCleared(True)


class LocalHandle(Handle):
    """A job of one node on this machine."""

    def __init__(self, job: Job, caches: CachesCleared | None) -> None:
        self._caches, self._lost = caches, list[dict[str, Any]]()
        path = job.directory / SPEC
        job.spec.save(path)
        if job.imports:
            warm_up(job.imports, job.environment)
        log = job.node_directory(0) / "agent.log"
        arguments = [str(path), "0"]
        self._agent = Child(job.module, arguments, log=log, environment=job.environment, sys_path=job.sys_path)
        known_by = {"agent": self._agent.identity, "mark": self._agent.mark}
        super().__init__(JobFile.begin(job.index, job.name, "local", job.directory, **known_by))
        if caches and caches.warning:
            self._news.append(caches.warning)

    def status(self) -> Status:
        """Whether the agent still runs, and if not, whether it succeeded."""
        if not self._agent.has_ended(within=0.02):
            return "running"
        self.stop()
        if (code := self._agent.returncode) == 0:
            return "succeeded"
        if self._file.is_asked_to_stop():
            self._lost = [{"node": None, "reason": f"job {self.id} was stopped by its id"}]
        elif code is not None and code < 0:
            self._lost = [{"node": 0, "reason": f"the agent {self._agent.cause_of_death()}"}]
        return "failed"

    @property
    def left(self) -> str:
        """By its agent, as all that has its mark."""
        return self._agent.left

    def facts(self) -> dict[str, Any]:
        """Whether caches were cleared, where somebody asked; and who ended the agent, if somebody did."""
        cleared = {} if self._caches is None else {"caches_cleared": self._caches.cleared}
        return {**cleared, **({"lost": self._lost} if self._lost else {})}

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        self._agent.say(line)

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """All is here."""
        return None

    def stop(self) -> None:
        """Ask by closing standard input, then kill."""
        self._agent.end(patience=10)
        self._file = self._file.end("succeeded" if self._agent.returncode == 0 else "failed")
