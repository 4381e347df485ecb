"""An engine's process as a group of its own on this machine, forked from what has imported torch already."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import digits
from typing import Protocol

from proofmark.process.child import cause_of_death
from proofmark.process.descriptors import is_ready
from proofmark.process.environment import begun_with
from proofmark.process.lifetime import end_group
from proofmark.process.warm.modules import start_module
from proofmark.wall.isolation import Isolation

OUTPUT = 1
"""What it prints goes where the referee's process prints."""

ENDING = 5.0
"""Seconds that it gets to end by itself."""


class Started(Protocol):
    """An engine's process, and all that it starts, wherever that is.

    Attributes:
        socket: by which it is spoken to.
        pid: the id of its process here.
        life: a descriptor that is readable when that has ended.
        isolation: how it is kept from the rest, where its place says that; None where it says so itself.
    """

    socket: socket.socket
    pid: int
    life: int
    isolation: Isolation | None

    def stop(self) -> list[int]:
        """Have all of it stop; their ids. Who is not stopped yet starts no other."""

    def tell(self, number: int) -> None:
        """Send all of it a signal; nothing to do where it was ended."""

    def stacks(self) -> None:
        """Have it print where all its threads are."""

    def close(self) -> None:
        """Have it end, at the latest by force, and all that it started. A second time does nothing."""

    def cause(self) -> str:
        """How it ended, once it has; part of a sentence."""


class OwnGroup:
    """`python -m proofmark.inference.engine.inside.main`, which dies with this process."""

    isolation: Isolation | None = None

    def __init__(
        self, directory: Path, sys_path: Sequence[str] | None = None, variables: Mapping[str, str] | None = None
    ) -> None:
        """Start it, with nothing of this process's but what passes of its environment, in a directory of its own.

        Args:
            directory: that one, its home too; an absolute path.
            sys_path: where its Python finds modules; None: where this one does.
            variables: those that the vendor declares.

        Raises:
            OSError: it can't be started.
        """
        self.socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        arguments, own = [str(os.getpid()), str(directory)], {"TMPDIR": str(directory)}
        path = {"PYTHONPATH": os.pathsep.join(sys.path if sys_path is None else sys_path)}
        environment = begun_with(variables or {}, own | path, home=str(directory))
        with its:
            self._process = start_module(
                "proofmark.inference.engine.inside.main", arguments, [its.fileno()], OUTPUT, environment
            )
        self.pid = self._process.pid
        self.life = os.pidfd_open(self.pid)

    def stop(self) -> list[int]:
        """Signal its group, which has no others from then on: who has a signal before him starts no process."""
        self.tell(signal.SIGSTOP)
        return list(_members(self.pid))

    def tell(self, number: int) -> None:
        """Signal its group."""
        if self._process.returncode is None:  # until it was waited for, its id is its own
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def stacks(self) -> None:
        """Signal its leader."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGUSR1)

    def close(self) -> None:
        """Close all that leads to it, wait, and kill its group."""
        if self._process.returncode is not None or self.life < 0:
            return
        self.tell(signal.SIGCONT)
        self.socket.close()
        if self._process.stdin:
            self._process.stdin.close()
        is_ready(self.life, ENDING)
        end_group(self._process)
        os.close(self.life)
        self.life = -1

    def cause(self) -> str:
        """By its exit code."""
        is_ready(self.life, ENDING)
        end_group(self._process)
        return cause_of_death(self._process.returncode)


def _members(group: int) -> Iterator[int]:
    """Processes of a group, those that nobody has waited for too. A machine may have thousands of others."""
    for name in os.listdir("/proc"):
        if name[0] in digits:
            try:
                if os.getpgid(int(name)) == group:
                    yield int(name)
            except ProcessLookupError:  # it has ended
                pass
