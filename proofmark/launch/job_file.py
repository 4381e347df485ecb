"""Jobs on disk: what a user has running from a checkout, whichever session began it, after a crash too.

A job's file `job.json` lies in its run's folder; a link of its id and its host, `ID@HOST`, in a folder of the user's
own in the cache, leads to it. A session that is gone has taken all that it ran with it: what it started ends when its
pipes close. Only what lost even those is left to be ended, by its mark.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proofmark.atomic_file import write_atomically
from proofmark.errors import UsageError, harmless, reason
from proofmark.plain_json import first_of, read_json
from proofmark.process.identity import ProcessIdentity

FILE, STOP = "job.json", "job.stop"

LOGS = ("*.log", "noderank*/*.log", "log/*.log", "server*/noderank*/*.log")
"""Where a job's logs lie in its folder: its own, its nodes', its service's, those of further servers."""

MOST = 200
"""Jobs that an index remembers: the last ones."""

LONGEST = 1 << 20
"""Bytes of a log that are read at once."""

_ID = re.compile(r"[0-9a-f]{12}")
_Mark = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]

Status = Literal["running", "succeeded", "failed", "stopped", "lost", "unseen"]
"""`unseen` is one whose session is of another host, which shares this folder: whether that lives is not to be seen."""


class AtService(BaseModel):
    """A job that a service runs, which does not end with the session that submitted it.

    Attributes:
        name: that it was given there, and no other job has.
        id: the service's own; None while it is being created.
        nodes: how many it has.
        leaves: patterns of the names that what it leaves may have; none in older files.
        settings: what the launcher needs to find it again. No secret.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    id: str | None = None
    nodes: Annotated[int, Field(ge=1)]
    leaves: tuple[str, ...] = ()
    settings: dict[str, Any]


class JobFile(BaseModel):
    """One job.

    Attributes:
        name: of what it is a run.
        directory: where it leaves its files, on this machine.
        user: who began it.
        host: the name of its session's machine; empty in older files, which do not say.
        session: the process that leads it.
        agent: the process that it is, where that runs on this machine, known by its `mark`.
        hosts: those that it runs on otherwise.
        service: where it is, if a service runs it.
        status: as its session wrote it down last; 'lost' of one that a service may still run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str
    name: str
    launcher: str
    directory: str
    user: int
    started: Annotated[float, Field(ge=0, lt=253_402_300_800)]
    host: str = ""
    session: ProcessIdentity
    agent: ProcessIdentity | None = None
    mark: _Mark | None = None
    hosts: tuple[str, ...] = ()
    service: AtService | None = None
    status: Status = "running"
    ended: float | None = None

    @classmethod
    def begin(cls, index: Path | None, name: str, launcher: str, directory: Path, **identity: Any) -> Self:
        """Write a new job down, and remember it in an index where there is one that may be written to.

        Raises:
            OSError: the job's own folder can't be written.
        """
        job = cls(
            id=secrets.token_hex(6),
            name=name,
            launcher=launcher,
            directory=str(directory.absolute()),
            user=os.getuid(),
            started=time.time(),
            host=socket.gethostname(),
            session=ProcessIdentity.of(os.getpid()),
            **identity,
        )
        job._write()
        if index is not None:
            with contextlib.suppress(OSError):  # a cache that may only be read is a cache all the same
                folder = index / str(job.user)
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{job.id}@{job.host}").symlink_to(job.path)
                _forget(folder)
        return job

    @property
    def path(self) -> Path:
        """Where it is written down."""
        return Path(self.directory) / FILE

    def note(self, **changes: Any) -> Self:
        """The job with what has changed, written down if that is possible: a full disk ends no run."""
        changed = self.model_copy(update=changes)
        with contextlib.suppress(OSError):
            changed._write()
        return changed

    def end(self, status: Status) -> Self:
        """The job, noted as ended; nothing changes if it was before."""
        return self if self.ended is not None else self.note(status=status, ended=time.time())

    def ask_to_stop(self) -> None:
        """Have its session end it, which may be another process.

        Raises:
            OSError: its folder can't be written.
        """
        (Path(self.directory) / STOP).touch()

    def is_asked_to_stop(self) -> bool:
        """Whether somebody other than its session has asked."""
        return (Path(self.directory) / STOP).exists()

    def seconds_since_noted(self) -> float:
        """Since it was written down last; 0 where that can't be told."""
        try:
            return max(0.0, time.time() - self.path.stat().st_mtime)
        except OSError:
            return 0.0

    def state(self) -> Status:
        """Its status as last noted, but 'lost' if its session is gone without a word, 'unseen' if that is on another
        host."""
        if self.status != "running" or self.session.lives():
            return self.status
        return "unseen" if self.host not in ("", socket.gethostname()) else "lost"

    def logs(self, since: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
        """What was added to each of its logs beyond a position, by the log's path in the run's folder.

        Raises:
            OSError: one can't be read.
        """
        home = Path(self.directory)
        for path in sorted(path for pattern in LOGS for path in home.glob(pattern)):
            name = path.relative_to(home).as_posix()
            with path.open("rb") as stream:
                stream.seek(since.get(name, 0))
                if added := stream.read(LONGEST):
                    yield name, added

    def _write(self) -> None:
        write_atomically(self.path, self.model_dump_json(indent=1) + "\n", durable=False)


def index_in(cache_dir: str) -> Path:
    """The folder in a cache in which jobs are remembered."""
    return Path(cache_dir) / "jobs"


def read_job(path: Path) -> JobFile:
    """A job's file.

    Raises:
        UsageError: it can't be read, or is none; one line.
    """
    try:
        return JobFile.model_validate(read_json(path), strict=False)
    except ValidationError as error:
        raise UsageError(harmless(f"{path}: not a job's file: {first_of(error)}")) from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(harmless(f"{path}: not a job's file: {reason(error)}")) from None


def find_job(index: Path, identifier: str) -> JobFile:
    """The job of that id.

    Raises:
        UsageError: there is none, it is another user's, or its file is damaged.
    """
    if not _ID.fullmatch(identifier):
        raise UsageError(harmless(f"{identifier!r:.80} is not a job id: expected 12 hexadecimal digits"))
    found = sorted(index.glob(f"*/{identifier}*"))
    own = [link for link in found if link.parent.name == str(os.getuid())]
    if found and not own:
        raise UsageError(f"job {identifier} is another user's (uid {found[0].parent.name})")
    if not own:
        raise UsageError(f"there is no job {identifier} in {index}: `python -m proofmark.jobs list` shows those known")
    job = read_job(own[0])
    if job.id != identifier or job.user != os.getuid():
        raise UsageError(f"{own[0]}: it is the file of another job, {job.id} of uid {job.user}")
    return job


def known_jobs(index: Path) -> tuple[list[JobFile], list[str]]:
    """This user's, the oldest first, and what is wrong with files that can't be read."""
    jobs, wrong = [], []
    for link in (index / str(os.getuid())).glob("*"):
        if not link.exists():
            continue  # the results were removed
        try:
            jobs.append(read_job(link))
        except UsageError as error:
            wrong.append(str(error))
    return sorted(jobs, key=lambda job: job.started), wrong


def _forget(folder: Path) -> None:
    """Remove the links of jobs whose results were removed, and of the oldest that have ended. Results of a session on
    another host may lie on a disk of that host's own."""
    with contextlib.suppress(OSError):  # another session tidies up just now
        links = sorted(folder.iterdir(), key=lambda link: link.lstat().st_mtime)
        for number, link in enumerate(links):
            is_gone = not link.exists() and link.name.partition("@")[2] in ("", socket.gethostname())
            if is_gone or (number < len(links) - MOST and not _is_under_way(link)):
                link.unlink(missing_ok=True)


def _is_under_way(link: Path) -> bool:
    """Whether it has not ended, as far as its file says: on a service a job goes on without its session."""
    try:
        return read_job(link).ended is None
    except UsageError:
        return False
