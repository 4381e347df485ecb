"""The session's end of a Ray driver's process. Whatever becomes of that, the session goes on."""

from __future__ import annotations

import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor, wait
from multiprocessing.connection import Connection
from typing import Any, Protocol

from proofmark.errors import ProofmarkError, harmless
from proofmark.launch.ray.driver import FOUND, OWN
from proofmark.process.child import Child

ANSWERS = 120.0
"""Seconds in which it answers: Ray's own code gives a cluster up after sixty."""

LOOK_EVERY = 1.0
"""Seconds between two looks at whether a silent driver lives."""

PATIENCE = 10.0
"""Seconds in which it leaves its cluster when it is to end."""

FATAL = re.compile(r"\S+\.\w+:\d+: (.+)")
"""How Ray's own code writes what it ends its process for: file, line and reason."""


class Asked(Protocol):
    """Who answers for a Ray."""

    def ask(self, method: str, *arguments: Any, within: float = ANSWERS) -> Any:
        """What a method of `proofmark.launch.ray.driver.Driver` returns.

        Raises:
            ProofmarkError: it could not, or there is no driver any more, or none that answers; one line.
        """

    def close(self) -> None:
        """Leave the cluster."""


class DriverProcess:
    """A driver."""

    def __init__(self, own: bool, within: float, where: str) -> None:
        """Start it.

        Args:
            own: whether it is to start a cluster.
            within: seconds in which it has imported Ray.
            where: the option that it is for, with which its complaints begin.

        Raises:
            OSError: it can't be started.
            ProofmarkError: Ray is not installed here, or can't be imported.
        """
        here, there = socket.socketpair()
        self._socket = Connection(here.detach())
        with there:
            self._child = Child(
                "proofmark.launch.ray.driver", [OWN if own else FOUND], passed=(there.fileno(),), everything=True
            )
        # of a thread: an interrupt of the session does not tear what goes over the socket
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ray driver")
        self._gone, self._where = "", where
        try:
            self._value(self._pool.submit(self._received, within).result())
        except BaseException:
            self.close()
            raise

    def ask(self, method: str, *arguments: Any, within: float = ANSWERS) -> Any:
        """As `Asked.ask`."""
        if self._gone:
            return self._value((False, self._gone))
        return self._value(self._pool.submit(self._exchanged, (method, arguments), within).result())

    def close(self) -> None:
        """Have it leave its cluster and end, and all that it started here. A second time does nothing."""
        if self._socket.closed:
            return
        self._gone = self._gone or "it was closed"
        wait([self._pool.submit(self._socket.close)], PATIENCE)  # after what is being asked, which ends with the child
        self._child.end(PATIENCE)
        self._pool.shutdown()

    def _exchanged(self, question: tuple[str, tuple[Any, ...]], within: float) -> tuple[bool, Any]:
        try:
            self._socket.send(question)
        except OSError:
            return self._lost("")
        return self._received(within)

    def _received(self, within: float) -> tuple[bool, Any]:
        deadline = time.monotonic() + within
        try:
            while not self._socket.poll(max(0.0, min(deadline - time.monotonic(), LOOK_EVERY))):
                if self._child.has_ended():
                    return self._lost("")
                if time.monotonic() >= deadline:
                    return self._lost(f"nothing answers in {within:g} s")
            able, value = self._socket.recv()
        except (EOFError, OSError):
            return self._lost("")
        return able, value

    def _lost(self, why: str) -> tuple[bool, Any]:
        """End what answers no more, or has ended; its last words are the reason where there is no other."""
        if not why:
            self._child.has_ended(PATIENCE)
        self._child.kill()
        self._gone = why or f"Ray's own code {self._child.cause_of_death()}: {last_words(self._child.printed)}"
        return False, self._gone

    def _value(self, answer: tuple[bool, Any]) -> Any:
        able, value = answer
        if not able:
            raise ProofmarkError(harmless(f"{self._where}: {value}"))
        return value


def last_words(printed: bytes) -> str:
    """Why Ray ended a process, by what that has printed."""
    lines = [line.strip() for line in printed.decode(errors="replace").splitlines() if line.strip()]
    fatal = [found[1] for line in lines if (found := FATAL.search(line))]
    return next(reversed(fatal or lines), "without a word")
