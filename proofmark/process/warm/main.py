"""The warm process: `python -m proofmark.process.warm.main CONTROL MODULES...` imports, and forks on orders.

A fork's orders come over a socket, with its descriptors. It is made by way of a process in between, whose end leaves it
to the session, which adopts it; the answer is its id, or 0 where there is none.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from proofmark.process.between_programs import is_ending
from proofmark.process.lifetime import MARK, NOBODY, WITHIN, die_with_parent
from proofmark.process.warm.imports import CACHES

LONGEST = 1 << 20
"""Bytes of orders."""

DESCRIPTORS = 253
"""That come with orders: as many as Linux lets a message have."""

ENVIRONMENT_BEGINS = 47
"""Which field of /proc/self/stat after the name is the address of the environment."""

THREADS = "OMP_NUM_THREADS"

LOOKS, EVERY = 200, 0.005
"""How often it is looked whether the threads that a library ends have begun to, and seconds between two looks. Looks
are counted, not seconds: while the machine stood still no thread could end."""


def import_all(modules: Sequence[str]) -> None:
    """Import what can be, for all that is forked afterwards."""
    gc.disable()  # there is nothing to collect, and each collection walks over all that is there: a fifth of the time
    with cores_kept():
        for module in modules:
            with contextlib.suppress(Exception):  # who needs it will see why
                importlib.import_module(module)
    gc.enable()
    gc.freeze()  # what a collection does not touch stays shared; one here would take a third of a second for 4 MB
    for finalizer in list(getattr(weakref.finalize, "_registry", ())):
        finalizer.atexit = False  # each fork would take torch's operators out one by one: what they are in ends with it


@contextlib.contextmanager
def cores_kept() -> Iterator[None]:
    """This thread keeps its cores while it imports: an OpenMP that is told to bind threads binds this one to the first
    when it is loaded, and what is started here would begin there, and stay there behind a wall, where no thread is
    bound by its number."""
    cores = os.sched_getaffinity(0)
    try:
        yield
    finally:
        if os.sched_getaffinity(0) != cores:  # some sandboxes refuse to be asked, and bind nothing either
            os.sched_setaffinity(0, cores)


def _is_closed(control: socket.socket) -> bool:
    """Whether nobody holds the other end."""
    try:
        return not control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


def is_alone() -> bool:
    """Whether this process has one thread, after a fork: before one, a library with threads that heed it ends them.

    A thread that was waited for is listed until the kernel has cleared it away, on a busy machine for some time: one
    that has begun to end counts for none.
    """
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    for _ in range(LOOKS):
        if threads() == 1:
            return True
        time.sleep(EVERY)
    return False


def threads(tasks: Path = Path("/proc/self/task")) -> int:
    """How many of a process's threads go on."""
    stats = list[bytes]()
    for task in os.listdir(tasks):
        with contextlib.suppress(OSError):  # it has ended
            stats.append((tasks / task / "stat").read_bytes())
    return sum(not is_ending(stat) for stat in stats)


def serve(control: socket.socket) -> NoReturn:
    """Fork until the session closes its end of `control`. What is forked runs its module to its end."""
    orders = _wait_for_birth(control)
    runpy.run_module(orders["module"], run_name="__main__", alter_sys=True)
    sys.exit()


def _wait_for_birth(control: socket.socket) -> dict[str, Any]:
    """Returns in what was forked, and there only: its orders."""
    fit = is_alone()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, LONGEST, DESCRIPTORS)
        if not message:
            os._exit(0)
        orders: dict[str, Any] = json.loads(message)
        if any(module not in sys.modules for module in orders["imports"]):
            # torch's compiler makes its directory when it is imported; where that is may not have been known before
            os.environ.update({key: value for key, value in orders["environment"].items() if key in CACHES})
            import_all(orders["imports"])
            fit = is_alone()
        if not fit:
            control.send(b"0")
            os._exit(0)
        if "module" not in orders:  # that was all
            continue
        answer_read, answer_write = os.pipe()
        if (between := os.fork()) == 0:
            _compute_as(orders["environment"])  # here: the pools' threads do not come along into what is forked
            if _has_forked():  # its end leaves its child to the session
                os._exit(0)
            control.close()
            os.close(answer_read)
            os.setsid()
            _become(orders, descriptors)
            with contextlib.suppress(BrokenPipeError):  # the session is gone: as any child, it tidies up and ends
                os.write(answer_write, str(os.getpid()).encode())
            os.close(answer_write)
            return orders
        for descriptor in (*descriptors, answer_write):
            os.close(descriptor)
        os.waitpid(between, 0)
        with os.fdopen(answer_read, "rb") as answer:
            control.send(answer.read() or b"0")


def _has_forked() -> bool:
    """Whether this process is done: it has forked, or could not. What it has forked waits until it was adopted."""
    between = os.getpid()
    try:
        if os.fork():
            return True
    except OSError:
        return True
    while os.getppid() == between:
        time.sleep(0.001)
    return False


def _become(orders: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """Take on what a new process would have begun with."""
    environment: dict[str, str] = orders["environment"]
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    _wear({name: environment.get(name) or NOBODY for name in (MARK, WITHIN)})
    path = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = dict.fromkeys(entry for entry in (*path, *sys.path) if entry)
    sys.argv = ["", *orders["arguments"], *map(str, descriptors[3:])]
    tempfile.tempdir = None
    if orders["temporary"]:  # not before: whoever waits for this fork may be killed, and nobody knew of it then
        os.mkdir(orders["temporary"], 0o700)
    if "numpy" in sys.modules:  # its chance is not to be that of all the others
        sys.modules["numpy"].random.seed()


def _compute_as(environment: Mapping[str, str]) -> None:
    """Give the libraries that are loaded the number of threads that they would have found in an environment.

    Some start them at once. torch forgets its own when it is forked twice, so of several it is told behind the wall, by
    `heed_environment`.
    """
    if (named := environment.get(THREADS)) == os.environ.get(THREADS):
        return
    threads = int(named or 1)
    if "numpy" in sys.modules:
        importlib.import_module("threadpoolctl").threadpool_limits(threads)
    if "torch" in sys.modules and threads == 1:  # its MKL can't be found by others
        sys.modules["torch"].set_num_threads(1)


def _wear(marks: Mapping[str, str]) -> None:
    """Others see the environment that a process began with, in its place: its marks go there."""
    begun_with = b"\0" + Path("/proc/self/environ").read_bytes()
    start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[ENVIRONMENT_BEGINS])
    for name, mark in marks.items():
        before, name_there, after = begun_with.partition(f"\0{name}=".encode())
        if name_there and len(mark) == after.find(b"\0"):  # there is room for it, and for no more
            ctypes.memmove(start + len(before) + len(name_there) - 1, mark.encode(), len(mark))


if __name__ == "__main__":
    die_with_parent(signal.SIGKILL)()
    own_end = socket.socket(fileno=int(sys.argv[1]))
    if _is_closed(own_end):  # the parent ended before that
        sys.exit()
    import_all(sys.argv[2:])
    serve(own_end)
