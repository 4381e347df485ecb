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
from importlib.metadata import entry_points
from typing import IO, Any

from proofmark.process.lifetime import MARK, Child, end_group
from proofmark.process.warm_main import PLACEHOLDER

PATIENCE = 120.0
"""Seconds that its imports may take, and that a fork may."""

PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37


class _Forked:
    """A child that was forked elsewhere and came to be this process's."""

    def __init__(self, pid: int, stdin: IO[bytes] | None) -> None:
        self.pid, self.stdin = pid, stdin
        self.returncode: int | None = None

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode


class Warm:
    """This process's end of the warm process."""

    def __init__(self, control: socket.socket, process: Child, surroundings: Any = None) -> None:
        """Take over one that serves at the other end of `control`, for these surroundings or for any."""
        self.modules: Sequence[str] = ()
        self._control, self._process, self._surroundings = control, process, surroundings
        self._control.settimeout(PATIENCE)
        self._owner = os.getpid()
        atexit.register(self.close)

    @classmethod
    def start(cls, modules: Sequence[str], environment: Mapping[str, str]) -> Warm:
        """Start one, without waiting for its imports, with `environment` beside what this process has.

        Raises:
            OSError: it can't be started.
        """
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            process = subprocess.Popen(
                [sys.executable, "-m", "proofmark.process.warm_main", str(its.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                start_new_session=True,
                env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path), MARK: PLACEHOLDER},
            )
        return cls(ours, process, _surroundings())

    @property
    def usable(self) -> bool:
        """Whether it still stands for what a new process would import."""
        same = self._surroundings is None or self._surroundings == _surroundings()
        return same and self._control.fileno() >= 0 and self._owner == os.getpid()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def fork(
        self,
        module: str,
        arguments: Sequence[str],
        descriptors: Sequence[int],
        environment: Mapping[str, str],
        imports: Sequence[str],
    ) -> int | None:
        """The id of a new child of this process, or None, whatever the reason: then one must be started from nothing.

        Args:
            module: what it runs, as `python -m` does.
            arguments: its arguments, before the numbers of the descriptors from the fourth on.
            descriptors: its standard input, output and error, and more.
            environment: all of it.
            imports: what is imported before, for this one and all that follow.
        """
        orders = {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "imports": [*self.modules, *imports],
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


_warm: Warm | None = None


def warm_up(modules: Sequence[str], environment: Mapping[str, str]) -> None:
    """Have a warm process that imports `modules`, where that can be: what fails to be imported there is left to others.

    Not where an extension package of torch would touch its devices when torch is imported.

    Args:
        modules: what all that it forks will need.
        environment: beside what this process has: what an import may look at.
    """
    global _warm
    if sys.platform != "linux" or entry_points(group="torch.backends"):
        return
    if _warm is None or not _warm.usable:
        if _warm:
            _warm.close()
        with contextlib.suppress(OSError):
            _warm = Warm.start(modules, environment)
    if _warm:
        _warm.modules = modules


def start_module(
    module: str,
    arguments: Sequence[str],
    passed: Sequence[int],
    output: int,
    environment: Mapping[str, str],
    imports: Sequence[str] = (),
) -> Child:
    """`python -m MODULE ARGUMENTS... PASSED...` in a session of its own, with a pipe as its standard input.

    Args:
        module: what runs.
        arguments: what it is told.
        passed: descriptors that it gets; their numbers there follow its arguments.
        output: the descriptor that it prints to.
        environment: all of it.
        imports: modules that it will need, and the next ones too.
    """
    if _warm and _warm.usable:
        read, write = os.pipe()
        stdin = os.fdopen(write, "wb")
        try:
            if pid := _warm.fork(module, arguments, (read, output, output, *passed), environment, imports):
                return _Forked(pid, stdin)
        except BaseException:
            stdin.close()
            raise
        finally:
            os.close(read)
        stdin.close()
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments, *map(str, passed)],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        pass_fds=passed,
        start_new_session=True,
        env=dict(environment),
    )


def _surroundings() -> Any:
    """What decides over how modules are imported."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return os.getcwd(), list(sys.path), environment


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
