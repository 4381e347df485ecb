"""An engine's process as its referee sees it: started, spoken to, watched for its death, ended."""

from __future__ import annotations

import array
import contextlib
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofmark.errors import StepError
from proofmark.inference.engine.protocol import LONGEST
from proofmark.process.child import cause_of_death
from proofmark.process.environment import begun_with
from proofmark.process.lifetime import end_group
from proofmark.process.warm.modules import start_module

SPIN_NS = 20_000
"""For so long an answer is looked for without sleeping: to be woken takes as long."""

LOOK = 1
"""Seconds of silence after which it is looked whether there is a process that could speak."""

ENDING = 5.0
"""Seconds that the process gets to end by itself."""

OUTPUT = 1
"""What it prints goes where the referee's process prints."""


class EngineFailed(StepError):
    """An engine raised, answered what is no answer, or its process died. `detail` is its traceback, if there is one."""

    def __init__(self, reason: str, detail: str | None = None) -> None:
        self.detail = detail
        super().__init__(reason)


class EngineProcess:
    """`python -m proofmark.inference.engine.main`, which dies with this process."""

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
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        arguments, own = [str(os.getpid()), str(directory)], {"TMPDIR": str(directory)}
        path = {"PYTHONPATH": os.pathsep.join(sys.path if sys_path is None else sys_path)}
        environment = begun_with(variables or {}, own | path, home=str(directory))
        with its:
            self._process = start_module(
                "proofmark.inference.engine.main", arguments, [its.fileno()], OUTPUT, environment
            )
        self._buffer, self._rests = bytearray(LONGEST), False
        self._life = os.pidfd_open(self._process.pid)
        self._poll = select.poll()
        self._poll.register(self._life, select.POLLIN)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", LOOK, 0))

    @property
    def pid(self) -> int:
        """Its process, and its group."""
        return self._process.pid

    def send(self, message: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a message, with descriptors. One that rests wakes.

        Raises:
            EngineFailed: the process has ended.
        """
        if self._rests:
            self._wake()
        try:
            if descriptors:
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
                self._socket.sendmsg([message], [rights])
            else:
                self._socket.send(message)
        except OSError:
            raise self._lost() from None

    def receive(self) -> bytes:
        """The next message, however long it takes: the referee's own parent watches over that.

        Raises:
            EngineFailed: the process has ended.
        """
        deadline = time.perf_counter_ns() + SPIN_NS
        while (message := self._taken(socket.MSG_DONTWAIT)) is None and time.perf_counter_ns() < deadline:
            os.sched_yield()  # the engine's threads may want this very processor
        while message is None:
            ended = bool(self._poll.poll(0))  # before: what it said last is taken, and no word of a process it forked
            message = self._taken(socket.MSG_DONTWAIT if ended else 0)  # one call: what follows it is under the clock
            if message is None and ended:
                raise self._lost()
        return message

    def _taken(self, flags: int = 0) -> bytes | None:
        """The next message, None where there is none yet."""
        try:
            length = self._socket.recv_into(self._buffer, 0, flags)
        except BlockingIOError:
            return None
        except OSError:
            raise self._lost() from None
        if not length:
            raise self._lost()
        return bytes(self._buffer[:length])

    def rest(self) -> None:
        """Have it, and all that it has started, do nothing until it is spoken to again."""
        self._rests = True
        self._tell_group(signal.SIGSTOP)

    def _wake(self) -> None:
        self._rests = False
        self._tell_group(signal.SIGCONT)

    def _tell_group(self, number: int) -> None:
        if self._process.returncode is None:  # until it was waited for, its id is its own
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def stacks(self) -> None:
        """Have it print where all its threads are."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGUSR1)

    def close(self) -> None:
        """Have it end, at the latest by force, with all that is left of its group. A second time does nothing."""
        if self._process.returncode is not None:
            return
        self._wake()
        self._socket.close()
        if self._process.stdin:
            self._process.stdin.close()
        select.select([self._life], [], [], ENDING)
        end_group(self._process)
        os.close(self._life)

    def _lost(self) -> EngineFailed:
        select.select([self._life], [], [], ENDING)
        end_group(self._process)
        how = cause_of_death(self._process.returncode)
        return EngineFailed(f"the engine's process {how}; its output is in worker.log")
