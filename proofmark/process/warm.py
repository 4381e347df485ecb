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

from proofmark.process.environment import begun_with
from proofmark.process.lifetime import MARK, Leader, die_with_parent, end_group, wait_without_reaping
from proofmark.process.warm_main import PLACEHOLDER, import_all, serve

PATIENCE = 120.0
"""Seconds that its imports may take, and that a fork may."""

PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37

READ_ONCE = (
    *("GOMP_", "KMP_", "LD_", "MALLOC_", "MKL_", "OMP_", "OPENBLAS_", "PYTHON", "PYTORCH_"),
    *("TORCHDYNAMO_", "TORCHINDUCTOR_", "TORCH_CPP_", "TORCH_DEVICE_BACKEND_", "TORCH_LOGS", "TRITON_"),
)
"""How the names of variables begin that are read when a process begins or imports: a fork can't be given others."""

TAKEN_ON = frozenset({"OMP_NUM_THREADS", "PYTHONPATH", "PYTHONUSERBASE"})
"""Of those the ones that it can be given."""

NO_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""For libraries that start a thread of their own when they are imported: pyarrow's allocator, which pandas imports."""

SET_BY_LIBRARIES = {"KMP_DUPLICATE_LIB_OK": "True", "KMP_INIT_AT_FORK": "FALSE"}
"""What scikit-learn puts into the environment when it is imported, unless it is set: that makes no difference."""


class Forked:
    """A child that was forked elsewhere and came to be this process's: what is used of a `Popen`."""

    def __init__(self, pid: int, stdin: IO[bytes] | None = None) -> None:
        self.pid, self.stdin = pid, stdin
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended; its exit code.

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
        self.modules: Sequence[str] = ()
        self._control, self._process, self._surroundings = control, process, surroundings
        self._environment = _read_once(environment)
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
        settled = {**NO_THREADS, "PYTHONPATH": os.pathsep.join(sys.path), MARK: PLACEHOLDER}
        begins_with = {**SET_BY_LIBRARIES, **begun_with(environment, settled)}
        with its:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "proofmark.process.warm_main", str(its.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                start_new_session=True,
                env=begins_with,
            )
        return cls(ours, process, begins_with, _surroundings())

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
        same = self._surroundings is None or self._surroundings == _surroundings()
        return same and self._control.fileno() >= 0 and self._owner == os.getpid()

    def suits(self, environment: Mapping[str, str]) -> bool:
        """Whether what it forks can take on `environment`."""
        wanted = _read_once(environment)
        others = {key for key, _ in wanted.items() ^ self._environment.items()}
        threads = wanted.get("OMP_NUM_THREADS", "")
        return others <= TAKEN_ON and ("OMP_NUM_THREADS" not in others or (threads.isdecimal() and int(threads) > 0))

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

    Args:
        modules: what all that it forks will need.
        environment: beside what passes of this process's: what an import may look at.
    """
    global _warm
    if not _can_be():
        return
    if _warm is None or not _warm.usable or not _warm.suits(begun_with(environment, {})):
        if _warm:
            _warm.close()
        with contextlib.suppress(OSError):
            _warm = Warm.start(modules, environment)
    if _warm:
        _warm.modules = modules


def split_off(modules: Sequence[str]) -> None:
    """Import `modules` here, and have a warm process that is forked from this one as it is then; or none, where that
    can't be. This process has no threads yet, and has run no vendor's code."""
    global _warm
    if _can_be():
        import_all(modules)
        with contextlib.suppress(OSError):
            _warm = Warm.split_off()


def fork_module(
    module: str,
    arguments: Sequence[str],
    descriptors: Sequence[int],
    environment: Mapping[str, str],
    imports: Sequence[str] = (),
) -> Forked | None:
    """`python -m MODULE ARGUMENTS...` without its imports; None where it has to be started from nothing.

    Args: as of `Warm.fork`.
    """
    if _warm is None or not _warm.usable or not _warm.suits(environment):
        return None
    pid = _warm.fork(module, arguments, descriptors, environment, imports)
    return None if pid is None else Forked(pid)


def start_module(
    module: str,
    arguments: Sequence[str],
    passed: Sequence[int],
    output: int,
    environment: Mapping[str, str],
    imports: Sequence[str] = (),
) -> subprocess.Popen[bytes] | Forked:
    """`python -P -m MODULE ARGUMENTS... PASSED...` in a session of its own, with a pipe as its standard input.

    Args:
        module: what runs.
        arguments: what it is told.
        passed: descriptors that it gets; their numbers there follow its arguments.
        output: the descriptor that it prints to, and writes its errors.
        environment: all of it.
        imports: modules that it will need, and the next ones too.
    """
    read, write = os.pipe()
    stdin = os.fdopen(write, "wb")
    try:
        forked = fork_module(module, arguments, (read, output, output, *passed), environment, imports)
    except BaseException:
        stdin.close()
        raise
    finally:
        os.close(read)
    if forked:
        forked.stdin = stdin
        return forked
    stdin.close()
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments, *map(str, passed)],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        pass_fds=passed,
        start_new_session=True,
        env=dict(environment),
    )


def _can_be() -> bool:
    """Not where an extension package of torch would touch its devices when torch is imported."""
    return sys.platform == "linux" and not entry_points(group="torch.backends")


def _read_once(environment: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in (SET_BY_LIBRARIES | dict(environment)).items() if key.startswith(READ_ONCE)}


def _surroundings() -> Any:
    """What decides over how modules are imported."""
    known = SET_BY_LIBRARIES | os.environ
    environment = {key: value for key, value in known.items() if not key.startswith("PYTEST_")}
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
