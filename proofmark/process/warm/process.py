"""A process that has imported what cases need, and forks their processes from itself: the second pays for no import.

It does nothing else: no case's and no vendor's code runs in it, no device is touched, no thread stays. What it forks is
a child of this process as if it had been started here, with a session, an environment, a mark, standard streams and an
exit code of its own. It ends with this process, whichever way that ends. Where it can't be, or has itself become unfit,
processes start from nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from proofmark.process.environment import begun_with
from proofmark.process.lifetime import (
    MARK,
    NOBODY,
    PR_SET_CHILD_SUBREAPER,
    WITHIN,
    Leader,
    die_with_parent,
    end_group,
    wait_without_reaping,
)
from proofmark.process.warm.imports import SET_BY_LIBRARIES, suits, surroundings
from proofmark.process.warm.main import serve

PATIENCE = 120.0
"""Seconds that its imports may take, and that a fork may."""

PR_GET_CHILD_SUBREAPER = 37


class Forked:
    """A child that was forked by another process and adopted by this one: what is used of a `Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.stdin: IO[bytes] | None = None
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; its exit code.

        Raises:
            subprocess.TimeoutExpired: it has not, in `timeout` seconds.
        """
        if timeout is not None and self.returncode is None and not wait_without_reaping(self.pid, timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        """To itself, not to its group."""
        if self.poll() is None:
            os.kill(self.pid, number)


class Warm:
    """This process's end of the warm process."""

    def __init__(
        self, control: socket.socket, process: Leader, environment: Mapping[str, str], surroundings: Any = None
    ) -> None:
        """Take over one that began with `environment` and serves at the other end of `control`, for these surroundings
        or for any."""
        self._modules: Sequence[str] = ()
        self._control, self._process, self._surroundings = control, process, surroundings
        self._environment = dict(environment)
        self._control.settimeout(PATIENCE)
        self._owner = os.getpid()
        atexit.register(self.close)

    @classmethod
    def start(cls, modules: Sequence[str], environment: Mapping[str, str]) -> Warm:
        """Start one, without waiting for its imports, with `environment` beside what passes of this process's: what it
        begins with stays to be read in the memory of all that it forks.

        Raises:
            OSError: it can't be started.
        """
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settled = {"PYTHONPATH": os.pathsep.join(sys.path), **dict.fromkeys((MARK, WITHIN), NOBODY)}
        begins_with = {**SET_BY_LIBRARIES, **begun_with(environment, settled)}
        with its:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "proofmark.process.warm.main", str(its.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                start_new_session=True,
                env=begins_with,
            )
        return cls(ours, process, begins_with, surroundings())

    @classmethod
    def split_off(cls) -> Warm:
        """Fork one from this process, which has imported what is needed and runs neither threads nor others' code.

        Raises:
            OSError: it can't be.
        """
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            pid = os.fork()
            if pid == 0:
                ours.close()
                os.setsid()
                die_with_parent(signal.SIGKILL)()
                for number in range(3):
                    os.dup2(os.open(os.devnull, os.O_RDWR), number)
                try:
                    serve(its)
                except Exception:  # noqa: BLE001 (it ends here, as it would have by itself)
                    sys.excepthook(*sys.exc_info())
                    sys.exit(1)
        return cls(ours, Forked(pid), os.environ)

    @property
    def usable(self) -> bool:
        """Whether it still stands for what a new process would import."""
        same = self._surroundings is None or self._surroundings == surroundings()
        return same and self._control.fileno() >= 0 and self._owner == os.getpid()

    def suits(self, environment: Mapping[str, str]) -> bool:
        """Whether what it forks can take on `environment`."""
        return suits(self._environment, environment)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def prepare(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        """Have it import what all that it forks from now on will need, without waiting for that. Of `environment` it
        takes on where caches are."""
        if set(modules) <= set(self._modules):
            return
        self._modules = modules
        with contextlib.suppress(OSError):  # it has ended: who asks for a fork will see that
            orders = {"imports": list(modules), "environment": dict(environment)}
            self._control.send(json.dumps(orders).encode(), socket.MSG_DONTWAIT)

    def fork(
        self,
        module: str,
        arguments: Sequence[str],
        descriptors: Sequence[int],
        environment: Mapping[str, str],
        imports: Sequence[str],
        temporary: Path | None = None,
    ) -> int | None:
        """The id of a new child of this process, or None, whatever the reason: then one must be started from nothing.

        Args:
            module: what it runs, as `python -m` does.
            arguments: its arguments, before the numbers of the descriptors from the fourth on.
            descriptors: its standard input, output and error, and more.
            environment: all of it.
            imports: what is imported before, for this one and all that follow.
            temporary: a directory that it makes for itself.
        """
        orders = {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "imports": [*self._modules, *imports],
            "temporary": str(temporary) if temporary else None,
        }
        pid = 0
        try:
            with _adopting():
                socket.send_fds(self._control, [json.dumps(orders).encode()], list(descriptors))
                pid = int(self._control.recv(64) or 0)
            if pid:
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)  # that it is a child of this process
        except (OSError, ValueError):
            if pid:
                os.killpg(pid, signal.SIGKILL)
            pid = 0
        except BaseException:
            self.close()  # an answer may still be under way
            raise
        if not pid:
            self.close()
        return pid or None

    def close(self) -> None:
        """End it; what it has forked lives on."""
        if self._owner != os.getpid():
            return
        self._control.close()
        end_group(self._process)
        atexit.unregister(self.close)


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Within, a descendant whose parent ends becomes a child of this process, and not of the system's first."""
    prctl, before = ctypes.CDLL(None).prctl, ctypes.c_int(0)
    prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)
