"""Ending a child, its process group and what left the group, by identity."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import itertools
import os
import signal
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, NoReturn, Protocol

from proofmark.process.between_programs import wait_between_programs
from proofmark.process.scratch.temporary import remove_own_temporary_directory

if TYPE_CHECKING:
    import psutil

MARK = "PROOFMARK_RUN_ID"
"""The environment variable by which a process that left its group is known: a random value per child."""

WITHIN = "PROOFMARK_WITHIN_RUN"
"""That of the process that started it, so that who ends one ends the other: a host's far end, or an agent's parent."""

SWEEP = 5.0
"""Seconds after which `end_marked` gives up on processes that go on starting others."""

LEAST = 3
"""Times that `end_marked` kills before it gives up: this process may have been given no processor for as long."""

DYING = 30.0
"""Seconds that a process which was killed gets to end: one that waits in a driver, or for a disk that is gone, does
not."""

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

NOBODY = "0" * 32
"""No mark, but as long as one: what is forked from the warm process writes its own over it."""


class Leader(Protocol):
    """What is needed of a child that leads a process group, `Popen` or not."""

    pid: int
    stdin: IO[bytes] | None

    @property
    def returncode(self) -> int | None:
        """Its exit code once it was waited for, negative for a signal."""

    def wait(self) -> int:
        """Wait for its end; its exit code."""


def marked(mark: str) -> dict[str, str]:
    """Variables by which a child, and all that it starts, is known: its own mark, and that of this process."""
    return {MARK: mark, WITHIN: os.environ.get(MARK) or NOBODY}


def die_with_parent(signal_number: int) -> Callable[[], None]:
    """What a new process calls before all else so that it gets a signal when the thread that made it ends (Linux)."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None

    def call() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal_number)

    return call


def end_with(parent: int) -> None:
    """End this process when its parent ends, however that happens; at once if that is gone already."""
    die_with_parent(signal.SIGKILL)()
    if os.getppid() != parent:
        os._exit(1)


def tidy_at_exit(leaves_results: bool = False) -> None:
    """Have this process, when it ends in any way short of being killed, do what its parent would have done, if that is
    gone.

    A thread that waits for the parent's end and then tidies may be overtaken: the main one fails as soon as what it
    works with is gone, and takes the process along.

    Args:
        leaves_results: whether its results may lie in its directory for temporary files: a parent that lives takes
            them from there.
    """
    own, parent = os.getpid(), os.getppid()

    def tidy() -> None:
        # not in what was forked; and a parent that dies closes its pipes before it is gone: where nothing is to be left
        # for it, it isn't asked
        if os.getpid() == own and (not leaves_results or os.getppid() != parent):
            end_started()
            remove_own_temporary_directory()

    atexit.register(tidy)


def adopt_orphans() -> None:
    """Have what descends from this process, and loses its parent, become its child, which is ended and waited for when
    this one ends (Linux): else nobody knows how much of the cores it took.

    To be called before anything is started, and before all that ends at exit by itself.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        atexit.register(_end_children, os.getpid())


def _end_children(parent: int) -> None:
    """Of this process, if it was not forked from that one. Who does not end in `DYING` seconds is left."""
    if os.getpid() != parent:
        return
    import psutil

    deadline, pause = time.monotonic() + DYING, 0.01
    with contextlib.suppress(ChildProcessError):  # there are no more
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
            for child in psutil.Process().children():
                with contextlib.suppress(psutil.Error):
                    child.kill()
            time.sleep(pause)
            pause = min(2 * pause, 0.25)  # beside one that dies slowly others are measured


def end_own_group() -> NoReturn:
    """For a child whose parent is gone: end its group, and all that left it, and leave no temporary file behind."""
    end_started()
    remove_own_temporary_directory()
    os.killpg(0, signal.SIGKILL)
    raise SystemExit(1)  # not reached


def end_started() -> None:
    """End what this process has started, its own group aside: what descends from it first, while that can be known."""
    end_descendants(os.getpid())
    end_marked(os.environ.get(MARK, ""))


def wait_without_reaping(pid: int, seconds: float) -> bool:
    """Wait until a child has ended, leaving its id taken; whether it has."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
                return True
        except ChildProcessError:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.01)


def leave(code: int, has_others_objects: bool = False) -> NoReturn:
    """End this process as the interpreter would, without taking its modules apart: with torch that takes a second, and
    may wait for a thread of torch's or abort over one.

    What lies in cycles is let go of, which takes a tenth of a second, where it may be others': a vendor's engine may
    have a device or a file to give back.
    """
    atexit._run_exitfuncs()
    if has_others_objects:
        gc.collect()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    ctypes.CDLL(None).fflush(None)  # what native code has printed
    os._exit(code)


_given_up = weakref.WeakSet["Leader"]()


def end_group(process: Leader) -> None:
    """Kill the group that `process` leads. The leader is reaped last, so that its id can't have gone to another.

    One that does not end in `DYING` seconds is given up, which is said once: it has no exit code, and keeps its id.
    """
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if wait_without_reaping(process.pid, 0 if process in _given_up else DYING):
        process.wait()
    elif process not in _given_up:
        _given_up.add(process)
        with contextlib.suppress(OSError, ValueError):
            print(f"WARNING {outlived([process.pid])}", file=sys.stderr, flush=True)


def outlived(processes: Sequence[int]) -> str:
    """What is said of processes that were given up."""
    which = f"process {', '.join(map(str, processes))}"
    return f"{which} goes on though it was killed: SIGKILL does not end what waits in a driver, or for a disk"


def end_family(process: Leader) -> None:
    """Kill the groups of `process` and of what descends from it, which may have wiped the mark from its environment.

    It is stopped before they are looked for: it starts no more, and its children's ids stay theirs.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGSTOP)
        end_descendants(process.pid)
    end_group(process)


def end_descendants(pid: int) -> None:
    """Kill the groups of what descends from a process, other than its own and this one's.

    What runs others' code leads a group, which behind a wall its forks can't leave, and may undo all else by which it
    would be known.
    """
    import psutil  # here: an engine in its vendor's image has none, and ends nobody

    groups = set[int]()
    with contextlib.suppress(psutil.NoSuchProcess):
        for descendant in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(ProcessLookupError):
                groups.add(os.getpgid(descendant.pid))
    for group in groups - {pid, os.getpgrp()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def end_marked(mark: str, patience: float = SWEEP) -> list[int]:
    """Kill every process of this user, apart from this one, that was started with `mark` in its environment.

    Looks until it twice finds none, since a process may start another while it is looked for; one that is becoming
    another program is waited for. Gives up after `patience` seconds, and returns those that are left.
    A process that cleared its environment is not found; an empty mark matches none, nor does the one that is nobody's,
    which all that sessions have started bears in the place of a parent's.
    """
    if mark in ("", NOBODY):
        return []
    import psutil

    def carrying() -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if _carries(process, mark, deadline)]

    deadline = time.monotonic() + patience
    for looks in itertools.count():
        found = carrying() or carrying()
        if not found or (looks >= LEAST and time.monotonic() >= deadline):
            break
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.01)
    return [process.pid for process in found]


def _carries(process: psutil.Process, mark: str, deadline: float) -> bool:
    import psutil

    try:
        if process.pid == os.getpid():
            return False
        environment = process.environ()
        if not environment and wait_between_programs(process.pid, deadline):
            environment = process.environ()
        return mark in map(environment.get, (MARK, WITHIN))
    except (psutil.Error, OSError):  # another user's, or gone
        return False
