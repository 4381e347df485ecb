"""A job by its id, whichever session began it and whatever became of that: a handle like its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proofmark.errors import UsageError
from proofmark.launch.job import Handle
from proofmark.launch.job_file import JobFile, Status, find_job, read_job
from proofmark.process.lifetime import end_marked

LEAVING = 15.0
"""Seconds in which a process whose session is gone ends by itself, and tidies up."""

PATIENCE = 60.0
"""Seconds that a session may take to end a job."""


def reattach(index: Path, identifier: str) -> Reattached:
    """The job of that id.

    Raises:
        UsageError: there is none, it is another user's, or its file is damaged.
    """
    return Reattached(find_job(index, identifier))


class Reattached(Handle):
    """A job that another session leads. One whose session is gone has ended: hosts let go of what they ran, and leave
    nothing behind, when the pipe to them closes; a process of this machine does so too."""

    @property
    def file(self) -> JobFile:
        """As it is written down."""
        return self._file

    def status(self) -> Status:
        """As its session wrote it down last, or 'lost'.

        Raises:
            UsageError: its file is there no more, or damaged.
        """
        self._file = read_job(self._file.path)
        return self._file.state()

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """All that comes home of a job is here, but for what its own session is about to fetch, or never will."""
        status, hosts = self.status(), ", ".join(self._file.hosts)
        if not hosts or status in ("succeeded", "failed", "stopped"):
            return None
        if status == "lost":
            return f"its session is gone, and with it what had not come home from {hosts}"
        return f"it is its session's, process {self._file.session.pid}, to bring it home from {hosts}"

    def stop(self) -> None:
        """Have its session end it; without one, end what is left of it on this machine.

        Raises:
            UsageError: its process's number belongs to another now, or its session does not answer.
            OSError: its folder can't be written.
        """
        status, agent = self.status(), self._file.agent
        if status == "running":
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
        while self.status() == "running":
            if time.monotonic() > deadline:
                raise UsageError(f"job {self.id}: its session, process {self._file.session.pid}, has not ended it")
            time.sleep(0.1)

    def facts(self) -> dict[str, Any]:
        """Which hosts it has or had, by name."""
        return {"hosts": [{"name": host} for host in self._file.hosts]}
