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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import digits

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

STOPPING = 1.0
"""Seconds that its threads get to stop: one that a driver holds in the kernel stops when it comes back."""

LATE, LATE_SHARE = 2, 0.1
"""In how many of its rests, or what share of them, it may have run: too rarely to move the median of what is timed."""

STOPPED, DEAD = (b"T", b"t"), (b"Z", b"X")
"""States of threads, as proc(5) calls them."""

OUTPUT = 1
"""What it prints goes where the referee's process prints."""


class EngineFailed(StepError):
    """An engine raised, sent an invalid answer, or its process died. `detail` is its traceback, if there is one."""

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
        self._buffer = bytearray(LONGEST)
        self._rested: dict[int, int] | None = None
        self._rests = self._ran = 0
        self._life = os.pidfd_open(self._process.pid)
        self._poll = select.poll()
        self._poll.register(self._life, select.POLLIN)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", LOOK, 0))

    @property
    def pid(self) -> int:
        """The id of its process, and of its group."""
        return self._process.pid

    def send(self, message: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a message, with descriptors. One that rests wakes.

        Raises:
            EngineFailed: the process has ended, or did not rest.
        """
        if self._rested is not None:
            self._wake(self._rested)
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

    def _taken(self, flags: int) -> bytes | None:
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
        """Have it, and all that it has started, do nothing until it is spoken to again. A second time does nothing."""
        if self._rested is not None:
            return
        self._tell_group(signal.SIGSTOP)
        members = list(_members(self.pid))  # all, from now on: who has a signal before him starts no process
        until = time.monotonic() + STOPPING
        while True:
            before = _processor_times(members)
            have_stopped = all(map(_has_stopped, before))
            self._rested = _processor_times(members)  # not before: it ran until it stopped
            if (have_stopped and before == self._rested) or time.monotonic() > until:
                return
            time.sleep(0.0001)

    def _wake(self, rested: Mapping[int, int]) -> None:
        """A signal of a timer's may have continued what rested. What is stopped takes no time of a processor; of what
        is just being stopped a busy machine may leave a microsecond's work for later."""
        self._rested, self._rests = None, self._rests + 1
        self._ran += _processor_times(rested) != rested
        if self._ran > max(LATE, LATE_SHARE * self._rests):
            times = f"{self._ran} of the {self._rests} times that it was to rest"
            what = "another was being timed, or its batch laid down"
            raise EngineFailed(f"the engine ran, or a process of its own ended, in {times}: {what}")
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
        self._tell_group(signal.SIGCONT)
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


def _members(group: int) -> Iterator[int]:
    """Processes of a group, those that nobody has waited for too. A machine may have thousands of others."""
    for name in os.listdir("/proc"):
        if name[0] in digits:
            try:
                if os.getpgid(int(name)) == group:
                    yield int(name)
            except ProcessLookupError:  # it has ended
                pass


def _has_stopped(pid: int) -> bool:
    """Whether all threads of a living process have."""
    try:
        states = {_state(f"{pid}/task/{thread}")[0] for thread in os.listdir(f"/proc/{pid}/task")}
    except OSError:  # one has ended meanwhile
        return False
    return states <= {*STOPPED, *DEAD} and bool(states & {*STOPPED})


def _processor_times(pids: Iterable[int]) -> dict[int, int]:
    """Nanoseconds that each living one of these processes has taken of processors, with all of its threads."""
    times = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            state, threads = _state(str(pid))
            if state not in DEAD or threads > 1:  # its first thread may end before others
                times[pid] = time.clock_gettime_ns(~pid << 3 | 2)  # as clock_getcpuclockid(3) does
    return times


def _state(task: str) -> tuple[bytes, int]:
    """A thread's state, and how many its process has."""
    with open(f"/proc/{task}/stat", "rb", buffering=0) as stream:
        fields = stream.read().rpartition(b")")[2].split()  # a process may call itself ") R 1"
    return fields[0], int(fields[17])
