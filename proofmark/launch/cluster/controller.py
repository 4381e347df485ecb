"""What leads a session's jobs on other hosts: one event loop, in which connections stay from one job to the next."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sys
import threading
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from proofmark.launch.cluster.connection import HostError
from proofmark.launch.cluster.link import HostLink, HostSetup
from proofmark.launch.cluster.node import Node
from proofmark.launch.cluster.node_logs import NodeLogs
from proofmark.launch.cluster.preflight import HostReport
from proofmark.launch.job import Job

FILES = 4
"""Of each host: three pipes, and the process that leads there."""

SPARE = 256
"""For everything else that is open."""

ENDING = 60.0
"""Seconds that what is being done may take to end, before it is cancelled."""

PATIENCE = 2.0
"""Seconds that a far end may take to leave which has nothing to end."""

T = TypeVar("T")


class Controller:
    """An event loop in a thread of its own, and the links to hosts that wait there for a session's next job."""

    def __init__(self) -> None:
        self._kept: dict[Node, HostLink] = {}
        self._tasks = set[asyncio.Task[Any]]()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = asyncio.Event()
        self._thread = threading.Thread()

    def lead(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Do some work in the loop, beside whatever else is done there."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=(self._loop,), daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._led(work), self._loop)

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """What some work gives, which ends with whoever waits for it: an interrupt cancels it."""
        led = self.lead(work)
        try:
            return led.result()
        except BaseException:
            led.cancel()
            raise

    def close(self) -> None:
        """Wait for what is being done, let go of all hosts, and end the thread. An interrupt has no host waited for."""
        if self._loop is None:
            return
        self._loop.call_soon_threadsafe(self._closing.set)
        try:
            self._thread.join(2 * ENDING)
        except KeyboardInterrupt:
            for link in list(self._kept.values()):
                link.connection.kill()
        self._loop = None

    async def links(self, setup: HostSetup, nodes: Sequence[Node], job: Job | None) -> list[HostLink]:
        """A link to each node: one that waited, or one that is not open yet. Logs go where the job has them. A far end
        that waited runs outside of containers: it is none for a job that runs within.

        Raises:
            HostError: this machine doesn't allow a process so many open files.
        """
        allow_files(len(self._kept.keys() | nodes))
        return await asyncio.gather(*(self._link(setup, node, number, job) for number, node in enumerate(nodes)))

    async def _link(self, setup: HostSetup, node: Node, number: int, job: Job | None) -> HostLink:
        logs = NodeLogs(job.node_directory(number), job.leaves) if job else NodeLogs(None)
        report, kept = HostReport(number, node.name), self._kept.pop(node, None)
        if kept and kept.connection.is_open and setup.far_ends_stay:
            kept.connection.logs = logs
            link = HostLink(node, kept.connection, report, kept.python)
            link.container, link.engine_container = kept.container, kept.engine_container
            return link
        if kept:
            await setup.part_from(kept)
        return HostLink(node, setup.connection(logs), report, setup.cluster.python)

    async def release(self, setup: HostSetup, link: HostLink, well: bool) -> None:
        """Let go of a host, or have it wait for the session's next job, if all has gone `well` and it can."""
        if well and setup.far_ends_stay and link.connection.is_open and link.node not in self._kept:
            self._kept[link.node] = link
        else:
            await setup.part_from(link)

    async def _led(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            return await work
        finally:
            self._tasks.discard(task)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        with _no_thread_per_process():
            await self._closing.wait()
            if self._tasks:
                _, late = await asyncio.wait(self._tasks, timeout=ENDING)
                for task in late:
                    task.cancel()
                await asyncio.gather(*late, return_exceptions=True)
            await asyncio.gather(*(link.connection.close(PATIENCE) for link in self._kept.values()))


if sys.version_info < (3, 12):

    class _Watcher(asyncio.PidfdChildWatcher):
        """Stays with its loop: a loop in the main thread, a plugin's say, takes the process's watcher for its own."""

        def attach_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
            if not self.is_active():
                super().attach_loop(loop)

        def close(self) -> None:
            super().attach_loop(None)


@contextlib.contextmanager
def _no_thread_per_process() -> Iterator[None]:
    """Python 3.11 waits for every process in a thread; later ones do it as this does."""
    if sys.version_info >= (3, 12) or not _has_pidfd():
        yield
        return
    watcher = _Watcher()
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
