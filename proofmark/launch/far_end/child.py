"""Processes on a host, each with a mark by which all that it starts is found.

What `proofmark.process.child` is on this machine, without all that is not yet there: no psutil, no Proofmark.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from proofmark.process.between_programs import wait_between_programs

BETWEEN = 5.0
"""Seconds that a process which is becoming another program is waited for, to see whether it bears a mark."""


class Child:
    """A process that was started, and all that it starts: those have its mark in their environment."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str) -> None:
        self._process, self._mark = process, mark

    def has_ended(self) -> bool:
        """Whether the process has ended; its id stays taken until it is waited for."""
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        except ChildProcessError:
            return True

    def say(self, line: str) -> None:
        """Write a line to its standard input.

        Raises:
            OSError: it reads no more.
        """
        if self._process.stdin is not None:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def wait(self, seconds: float | None = None) -> int:
        """Wait for its end; its exit code."""
        return self._process.wait(seconds)

    def end(self, patience: float) -> None:
        """End it by its standard input, and sweep after `patience` seconds at most."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        deadline = time.monotonic() + patience
        while not self.has_ended() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.sweep()

    def sweep(self) -> None:
        """Kill its group, and whatever carries its mark."""
        if self._process.returncode is None:  # reaped, its id might be another's
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        kill_marked(self._mark)


def around(given: dict[str, str]) -> dict[str, str]:
    """A child's environment: this host's, with what is given in its place; but modules that are found by the host's
    own PYTHONPATH are found still, after what is given."""
    places = [given.get("PYTHONPATH"), os.environ.get("PYTHONPATH")]
    return {**os.environ, **given, "PYTHONPATH": os.pathsep.join(filter(None, places))}


def kill_marked(mark: str) -> None:
    """Kill whatever carries a mark, until two looks find none: one may start another while it is looked for."""
    for _ in range(50):
        found = carrying(mark) or carrying(mark)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def processes() -> list[int]:
    """All processes of the host."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def carrying(mark: str) -> list[int]:
    """Processes of the host, apart from this one, that have a mark in their environment."""
    value = f"={mark}\0".encode()
    return [pid for pid in processes() if pid != os.getpid() and value in _environment(pid)]


def _environment(pid: int) -> bytes:
    environment = Path(f"/proc/{pid}/environ")
    try:
        found = environment.read_bytes()
        if not found and wait_between_programs(pid, time.monotonic() + BETWEEN):
            found = environment.read_bytes()
        return found
    except OSError:  # gone, or another user's
        return b""
