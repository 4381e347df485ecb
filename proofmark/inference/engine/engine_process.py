"""An engine's process as its referee sees it: started, spoken to, watched for its death, ended."""

from __future__ import annotations

import array
import contextlib
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Mapping, Sequence

from proofmark.errors import StepError
from proofmark.inference.engine.place.own_group import Started
from proofmark.inference.engine.place.process_times import has_stopped, processor_times
from proofmark.inference.engine.protocol import COMING, LONGEST
from proofmark.wall.isolation import Isolation

SPIN_NS, QUICK_NS = 50_000, 100_000
"""For so long an answer is looked for without sleeping, since to be woken takes about as long; but only where the last
one came within QUICK_NS: a slow engine's thread it would keep from its processor."""

LOOK = 1
"""Seconds of silence after which it is looked whether there is a process that could speak."""

STOPPING = 1.0
"""Seconds that its threads get to stop: one that a driver holds in the kernel stops when it comes back."""

LATE, LATE_SHARE = 2, 0.1
"""In how many of its rests, or what share of them, it may have run: too rarely to move the median of what is timed."""


class EngineFailed(StepError):
    """An engine raised, sent an invalid answer, or its process died. `detail` is its traceback, if there is one."""

    def __init__(self, reason: str, detail: str | None = None) -> None:
        self.detail = detail
        super().__init__(reason)


class EngineProcess:
    """Messages to a process, and what comes back; and that it rests."""

    def __init__(self, started: Started) -> None:
        """Speak to what has just been started."""
        self._started, self._socket = started, started.socket
        self.buffer = bytearray(LONGEST)
        self._rested: dict[int, int] | None = None
        self._rests = self._ran = 0
        self._quick, self._sent = True, 0
        self._poll = select.poll()
        self._poll.register(started.life, select.POLLIN)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", LOOK, 0))

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._started.pid

    @property
    def isolation(self) -> Isolation | None:
        """How it is kept from the rest, where its place says that; None where it says so itself."""
        return self._started.isolation

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

    def awake(self) -> None:
        """Say that a call comes soon; and look whether the process lives, for its answer is believed without.

        Raises:
            EngineFailed: the process has ended, or did not rest.
        """
        self.send(COMING)
        if self._poll.poll(0):
            raise self._lost()

    def exchange(self, message: bytes) -> int:
        """Send a message after `awake`, and wait for the next one, which then lies in `buffer`: its bytes.

        The clock runs: unless a quick answer is expected nothing is done here but to send and to receive. What comes
        between the two, the engine may have to wait for.

        Raises:
            EngineFailed: the process has ended.
        """
        if self._rested is not None:
            self._wake(self._rested)
        self._sent = time.perf_counter_ns()
        try:
            self._socket.send(message)
            length = (self._quick and self._looked_for()) or self._socket.recv_into(self.buffer)
        except BlockingIOError:
            return len(self.receive())
        except OSError:
            raise self._lost() from None
        if not length:
            raise self._lost()
        return length

    def _looked_for(self) -> int:
        """Bytes of a message that comes soon; 0 where none does."""
        while time.perf_counter_ns() < self._sent + SPIN_NS:
            os.sched_yield()  # the engine's threads may want this very processor
            with contextlib.suppress(BlockingIOError):
                return self._socket.recv_into(self.buffer, 0, socket.MSG_DONTWAIT)
        return 0

    def answered(self) -> None:
        """`exchange` has just ended: was it quick, the next answer is looked for without sleeping."""
        self._quick = time.perf_counter_ns() < self._sent + QUICK_NS

    def receive(self) -> bytes:
        """The next message, however long it takes: the referee's own parent watches over that.

        Raises:
            EngineFailed: the process has ended.
        """
        while True:
            ended = bool(self._poll.poll(0))  # before: what it said last is taken, and no word of a process it forked
            message = self._taken(socket.MSG_DONTWAIT if ended else 0)
            if message is not None:
                return message
            if ended:
                raise self._lost()

    def _taken(self, flags: int) -> bytes | None:
        """The next message, None where there is none yet."""
        try:
            length = self._socket.recv_into(self.buffer, 0, flags)
        except BlockingIOError:
            return None
        except OSError:
            raise self._lost() from None
        if not length:
            raise self._lost()
        return bytes(self.buffer[:length])

    def rest(self) -> None:
        """Have it, and all that it has started, do nothing until it is spoken to again. A second time does nothing."""
        if self._rested is not None:
            return
        members = self._started.stop()
        until = time.monotonic() + STOPPING
        while True:
            before = processor_times(members)
            have_stopped = all(map(has_stopped, before))
            self._rested = processor_times(members)  # not before: it ran until it stopped
            if (have_stopped and before == self._rested) or time.monotonic() > until:
                return
            time.sleep(0.0001)

    def _wake(self, rested: Mapping[int, int]) -> None:
        """A signal of a timer's may have continued what rested. What is stopped takes no time of a processor; of what
        is just being stopped a busy machine may leave a microsecond's work for later."""
        self._rested, self._rests = None, self._rests + 1
        self._ran += processor_times(rested) != rested
        if self._ran > max(LATE, LATE_SHARE * self._rests):
            times = f"{self._ran} of the {self._rests} times that it was to rest"
            what = "another was being timed, data loaded, or its batch laid down"
            raise EngineFailed(f"the engine ran, or a process of its own ended, in {times}: {what}")
        self._started.tell(signal.SIGCONT)

    def stacks(self) -> None:
        """Have it print where all its threads are."""
        self._started.stacks()

    def close(self) -> None:
        """Have it end, at the latest by force, with all that it has started. A second time does nothing."""
        self._started.close()

    def _lost(self) -> EngineFailed:
        return EngineFailed(f"the engine's process {self._started.cause()}; its output is in worker.log")
