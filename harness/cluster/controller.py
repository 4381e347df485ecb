"""What the machine that leads a job has to have for its hosts: open files, and no thread for each."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from harness.cluster.connection import HostError

FILES = 4
"""Of each host: three pipes, and the process that leads there."""

SPARE = 256
"""For everything else that is open."""

T = TypeVar("T")


def lead(hosts: int, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do what is to be done with so many hosts, in an event loop of its own.

    Raises:
        HostError: this machine doesn't allow a process so many open files.
    """
    allow_files(hosts)

    async def led() -> T:
        with _no_thread_per_process():
            return await work()

    return asyncio.run(led())


@contextlib.contextmanager
def _no_thread_per_process() -> Iterator[None]:
    """Python 3.11 waits for every process in a thread; later ones do it as this does."""
    if sys.version_info >= (3, 12) or not _has_pidfd():
        yield
        return
    watcher = asyncio.PidfdChildWatcher()
    watcher.attach_loop(asyncio.get_running_loop())
    asyncio.set_child_watcher(watcher)
    try:
        yield
    finally:
        asyncio.set_child_watcher(asyncio.ThreadedChildWatcher())


def _has_pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # a kernel before 5.3
        return False
    return True


def allow_files(hosts: int) -> None:
    """See to it that files for so many hosts can be open at once.

    Raises:
        HostError: they can't.
    """
    needed = FILES * hosts + SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < needed:
        raise HostError(f"{hosts} hosts need {needed} open files on this machine; ulimit -n is {hard}: have it raised")
    if 0 <= soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
