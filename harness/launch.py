"""Starting a job's agents on hosts, and ending them by identity on every way out."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from harness.process import MARK, end_group, end_marked, wait_without_reaping

Status = Literal["running", "succeeded", "failed"]


@dataclass(frozen=True)
class Job:
    """One command per node; a node's own number is the command's last argument.

    `log` is the folder under which each node's output goes to `noderank<i>/agent.log`.
    """

    command: Sequence[str]
    log: Path
    nnodes: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)


class Handle(Protocol):
    """A job that was submitted."""

    def status(self) -> Status:
        """Whether any node still runs, and if not, whether all succeeded."""

    def stop(self) -> None:
        """End all of it; nothing to do for a job that has ended."""


class Launcher(Protocol):
    """A back end."""

    def submit(self, job: Job) -> Handle:
        """Start a job.

        Raises:
            UsageError: this back end can't run such a job.
        """


class LocalLauncher:
    """This machine."""

    def submit(self, job: Job) -> LocalHandle:
        """Start one process group per node; each ends when its standard input closes, so with this process."""
        return LocalHandle(job)


class LocalHandle:
    """A job on this machine."""

    def __init__(self, job: Job) -> None:
        self._agents: list[subprocess.Popen[bytes]] = []
        self._mark = secrets.token_hex(16)
        for node in range(job.nnodes):
            directory = job.log / f"noderank{node}"
            directory.mkdir(parents=True, exist_ok=True)
            with (directory / "agent.log").open("ab") as log:
                self._agents.append(
                    subprocess.Popen(
                        [*job.command, str(node)],
                        stdin=subprocess.PIPE,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                        env={**os.environ, **job.environment, MARK: self._mark},
                    )
                )

    def status(self) -> Status:
        """Whether any agent still runs, and if not, whether all succeeded."""
        ended = [wait_without_reaping(agent.pid, 0.02) for agent in self._agents]
        if not all(ended):
            return "running"
        self._reap()
        return "succeeded" if all(agent.returncode == 0 for agent in self._agents) else "failed"

    def stop(self) -> None:
        """Ask by closing standard input, then kill."""
        for agent in self._agents:
            with contextlib.suppress(OSError):
                if agent.stdin:
                    agent.stdin.close()
        for agent in self._agents:
            if agent.returncode is None:
                wait_without_reaping(agent.pid, 10)
        self._reap()

    def _reap(self) -> None:
        """End the agents' groups, and whatever they started that left those."""
        if all(agent.returncode is not None for agent in self._agents):
            return
        for agent in self._agents:
            end_group(agent)
            if agent.stdin:
                with contextlib.suppress(OSError):
                    agent.stdin.close()
        end_marked(self._mark)
