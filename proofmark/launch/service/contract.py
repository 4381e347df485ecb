"""What a service that runs whole jobs does for its launcher. A cloud is one subclass of `Service`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from proofmark.errors import ProofmarkError
from proofmark.launch.job_file import AtService

PORT = 29500

LOG_PIECE = 4 << 20
"""Bytes of a log that are asked for at once."""

State = Literal["waiting", "running", "succeeded", "failed", "stopping", "stopped"]


class ServiceError(ProofmarkError):
    """A service or its object store refuses, or can't be reached. The text names what was asked, and holds no secret.

    Attributes:
        transient: the same request may be granted later; it may have been carried out, too.
        taken: a job of that name is there already.
    """

    def __init__(self, text: str, *, transient: bool = False, taken: bool = False) -> None:
        super().__init__(text)
        self.transient, self.taken = transient, taken


@dataclass(frozen=True)
class Stored:
    """An object: its bytes, and when it was written, seconds since the epoch by the store's clock."""

    size: int
    modified: float


class ObjectStore(ABC):
    """Where code and results lie. Keys are paths from the bucket on: `bucket/a/b`."""

    @abstractmethod
    def put(self, key: str, content: bytes) -> None:
        """Write an object.

        Raises:
            ServiceError: it is refused.
        """

    @abstractmethod
    def list(self, prefix: str) -> dict[str, Stored]:
        """All objects below a prefix, by what follows it.

        Raises:
            ServiceError: it is refused.
        """

    @abstractmethod
    def fetch(self, key: str, path: Path) -> None:
        """An object as a file.

        Raises:
            ServiceError: it is not there, or refused.
            OSError: the file can't be written.
        """


@dataclass(frozen=True)
class Task:
    """One node's part of a job."""

    name: str
    code: int | None = None
    """Its exit code, None where there is none yet."""
    message: str = ""


@dataclass(frozen=True)
class LogPart:
    """Bytes of a task's log from a position on. What was had beyond that position was not the log's own."""

    begins: int
    content: bytes


@dataclass(frozen=True)
class View:
    """A job as its service sees it. Times are seconds since the epoch, by the service's clock.

    Attributes:
        phase: the service's own word.
        created: when it was. No result is taken of a job of which that is not known: it might be an older one's.
        seconds: that it ran, None where nobody says.
        restarts: how often a node of it was recovered or begun anew.
    """

    phase: str
    state: State
    tasks: Sequence[Task] = ()
    created: float | None = None
    started: float | None = None
    seconds: float | None = None
    restarts: int = 0
    message: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.state in ("succeeded", "failed", "stopped")


@dataclass(frozen=True)
class Timing:
    """How a service's jobs are followed, in seconds.

    Attributes:
        poll: between two looks, from the first on up to the last.
        budget: that requests may fail one after another.
        queue: that a job may wait for its nodes.
        life: after which a job that runs has ended, whoever looks. So long it is asked for in vain; 0: for `budget`.
    """

    poll: tuple[float, float] = (1.0, 10.0)
    budget: float = 300.0
    queue: float = 86400.0
    life: float = 0.0


@dataclass(frozen=True)
class Places:
    """Where a job's objects lie: prefixes that end in a slash."""

    code: str
    ticket: str
    results: str


@dataclass(frozen=True)
class Ended:
    """A job that succeeded, with what came home of it.

    Attributes:
        folder: the run's, on this machine.
        submitted: when it was handed over; `brought`: when all had come home. Seconds since the epoch, by our clock.
        listed: the objects among its results that no node's manifest knows, by their path there.
    """

    at: AtService
    view: View
    folder: Path
    nodes: int
    nproc: int
    submitted: float
    brought: float
    listed: Mapping[str, Stored]


class Service(ABC):
    """One cloud, configured. All that fails raises `ServiceError`."""

    timing = Timing()

    servers: int | None = None
    """How many independent servers a job is run on, each for itself; None: one training over all of a job's nodes."""

    data_dir: str | None = None
    """What stands for the published data's directory in a spec; None where there is none."""

    data_from: str = "in its settings"
    """Where a user says where that data lies, for messages."""

    environment: Mapping[str, str] = {}
    """Variables of all that runs on its nodes."""

    master_port = PORT
    """At which ranks meet on the first node."""

    boot: Mapping[str, bytes] = {}
    """Files that lie beside the packed code: what its nodes begin with."""

    notes: Sequence[str] = ()
    """What a user is told before a job is handed over."""

    @property
    @abstractmethod
    def store(self) -> ObjectStore:
        """Where its jobs find their code and leave their results."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What another session needs to find its jobs again: plain values, no secret."""

    @abstractmethod
    def count(self) -> int | None:
        """How many nodes a job can have; None if that is the service's to say."""

    @abstractmethod
    def examine(self, nodes: int, nproc: int) -> list[str]:
        """Ask whether such a job could be run; what was found, in lines. Nothing is created."""

    @abstractmethod
    def places(self, name: str, code: str) -> Places:
        """Where the objects of a job lie whose code tree has that SHA-256."""

    @abstractmethod
    def create(self, name: str, nodes: int, places: Places) -> str:
        """Have a job run; its id."""

    @abstractmethod
    def find(self, name: str) -> str | None:
        """The id of the job of exactly that name."""

    @abstractmethod
    def look(self, identifier: str) -> View:
        """How a job is."""

    @abstractmethod
    def log(self, at: AtService, task: Task, since: int) -> LogPart:
        """What was added to a task's log beyond a position, all of it or LOG_PIECE; nothing where there is no log yet.

        It may begin earlier, not later, where that position was reached with something else.
        """

    @abstractmethod
    def log_name(self, at: AtService, task: Task) -> str:
        """What the log's file is called."""

    @abstractmethod
    def stop(self, identifier: str) -> None:
        """Have a job ended; nothing to do for one that has."""

    def conclude(self, ended: Ended) -> Mapping[str, Any]:
        """Facts for the record from its own results, beside what the nodes wrote: none, unless it has some.

        Raises:
            ServiceError: an object is not what it should be; the text names its key.
        """
        return {}
