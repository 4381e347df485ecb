"""Jobs of one node as tasks of a Ray cluster, each with its devices as resources."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.errors import ProofmarkError
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.cluster.node_logs import NodeLogs
from proofmark.launch.far_end.protocol import goes_home
from proofmark.launch.job import Handle, HostLayout, Job
from proofmark.launch.job_file import JobFile, Status
from proofmark.launch.ray.driver_process import ANSWERS, Asked
from proofmark.launch.ray.task import HERE, Heard
from proofmark.process.environment import handed_on, passing, tidy_environment
from proofmark.process.lifetime import MARK, WITHIN, marked

RETRIES = 3
"""How often Ray runs a task again whose node is gone. Those that its memory monitor killed it runs without end."""

KEPT = 8
"""Sets of files that jobs read which stay in Ray's store, those read last: a task that runs keeps its own there."""

SILENT = 5.0
"""Seconds without a word of a task, which has one many times a second, after which nobody runs it at the moment."""

PATIENCE = 15.0
"""Seconds in which a job that is to end does so by itself."""

LOOK = 0.05
"""Seconds between two looks into the inbox, whoever asks."""


class RayLauncher:
    """One search's jobs on a cluster."""

    def __init__(
        self,
        driver: Asked,
        code: CodeTree,
        resources: Mapping[str, Any],
        together: bool,
        numbered: tuple[str, str] | None = None,
    ) -> None:
        """Send the code to the cluster.

        Args:
            driver: whom the cluster is asked by.
            code: what jobs import of this house.
            resources: options of each task that say what it takes.
            together: whether each gets a placement group, for devices that must be on one node.
            numbered: the resource whose numbers say which devices a task has, and the vendor's variable for them.

        Raises:
            ProofmarkError: Ray is gone, or its store has no more room.
        """
        self._driver, self._resources, self._together = driver, dict(resources), together
        self._numbered = numbered
        self._code = driver.ask("put", {path: code.contents[sha] for path, sha in code.files.items()})
        self._brought = OrderedDict[tuple[Path, ...], int]()
        self._inbox = driver.ask("inbox")
        self._handles = dict[str, RayHandle]()
        self._looked = 0.0

    def submit(self, job: Job) -> RayHandle:
        """Have Ray place the job, and return at once.

        Raises:
            OSError: its directory can't be written.
            ProofmarkError: Ray is gone, or its store has no more room.
        """
        handle = RayHandle(self, self._driver, self._inbox, job)
        group = None
        if self._together:
            devices = {"GPU": self._resources["num_gpus"]} if "num_gpus" in self._resources else {}
            group = {"CPU": self._resources["num_cpus"], **self._resources.get("resources", {}), **devices}
        options = {**self._resources, "max_retries": RETRIES, "name": job.name}
        orders = {**_orders(job), "numbered": self._numbered}
        self._driver.ask("submit", self._inbox, handle.name, options, group, orders, self._code, self._files(job))
        self._handles[handle.name] = handle
        return handle

    def look(self) -> None:
        """Give each handle the news of its task.

        Raises:
            ProofmarkError: Ray is gone, or who listens for this process there.
        """
        if time.monotonic() - self._looked < LOOK:
            return
        heard = self._driver.ask("take", self._inbox)
        self._looked = time.monotonic()
        for each in heard:
            if handle := self._handles.get(each[0]):
                handle.hear(each, self._looked)

    def forget(self, name: str) -> None:
        """Release what is kept for a job that has ended."""
        self._handles.pop(name, None)
        self._driver.ask("forget", self._inbox, name)

    def _files(self, job: Job) -> int:
        """What a job reads, in Ray's store: put there once for all that read the same."""
        key = tuple(job.brings.values())
        if key not in self._brought:
            self._brought[key] = self._driver.ask("put", {name: path.read_bytes() for name, path in job.brings.items()})
            if len(self._brought) > KEPT:
                self._driver.ask("drop", self._brought.popitem(last=False)[1])
        self._brought.move_to_end(key)
        return self._brought[key]


class RayHandle(Handle):
    """A job that is one task, known to Ray's driver by `name`."""

    def __init__(self, launcher: RayLauncher, driver: Asked, inbox: int, job: Job) -> None:
        super().__init__(JobFile.begin(job.index, job.name, "ray", job.directory))
        self._launcher, self._driver, self._inbox = launcher, driver, inbox
        self.name, self._home = secrets.token_hex(8), job.node_directory(0)
        self._leaves = (*job.leaves, *job.results, *job.beats)
        self._logs = NodeLogs(self._home, self._leaves)
        self._execution: str | None = None
        self._executions, self._ending = 0, False
        self._heard = 0.0
        self._status: Status = "running"

    def status(self) -> Status:
        """Whether it still runs, or waits to, and if not, whether it succeeded."""
        if self._status == "running" and not self._ending and self._file.is_asked_to_stop():
            self._say(f"job {self._file.id} was stopped by its id")
            self.stop()
        if self._status == "running":
            self._launcher.look()
            end = self._driver.ask("end_of", self.name, 0.0)
            if end is not None:
                self._end(self._come_to(end))
            elif self._executions > 1 + RETRIES:
                self._say(f"it was started {self._executions} times and never ended: nodes are lost, or lack memory")
                self._cancel("failed")
        return self._status

    @property
    def waits(self) -> bool:  # type: ignore[override]
        """Whether no node runs it at the moment: Ray has not placed it yet, or has lost where it was."""
        return time.monotonic() - self._heard > SILENT or self._execution is None

    def tell(self, line: str) -> None:
        """Write a line to its standard input, once it has one."""
        self._driver.ask("tell", self._inbox, self.name, line)

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """All that it leaves has come with its end."""
        return None

    def stop(self) -> None:
        """Ask it to end, then have Ray kill it."""
        self._ending = True
        with contextlib.suppress(ProofmarkError):  # a Ray that is gone has taken it along
            self.status()
        if self._status != "running":
            return
        with contextlib.suppress(ProofmarkError):
            if not self.waits:
                self._driver.ask("stop", self._inbox, self.name)
                self._driver.ask("end_of", self.name, PATIENCE, within=PATIENCE + ANSWERS)
        self._cancel("stopped")

    def hear(self, heard: Heard, moment: float) -> None:
        """Take what a task has said. One that is run again begins anew."""
        _, execution, clock, pieces = heard
        if execution != self._execution:
            self._execution, self._logs = execution, NodeLogs(self._home, self._leaves)
            self._executions += 1
            self.anew = self._executions > 1
            for name in self._left_here():
                (self._home / name).unlink()
        self._heard, self.clock_ahead = moment, clock - moment if abs(clock - moment) > SILENT else 0.0
        for name, offset, piece in pieces:
            with contextlib.suppress(ValueError):
                if offset is None:
                    self._replace(name, piece)
                else:
                    self._logs.add(name, offset, piece)

    def _come_to(self, end: Mapping[str, Any]) -> Status:
        """Take the task's end: write what it leaves here, and where it leaves nothing the reason."""
        if "lost" in end:
            self._say(end["lost"])
            return "failed"
        for name, content in end["files"].items():
            self._replace(name, content)
        return "succeeded" if end["code"] == 0 else "failed"

    def _say(self, why: str) -> None:
        """Write the last words of a job that can't have any itself."""
        with (self._home / "agent.log").open("a", encoding="utf-8") as log:
            log.write(f"\nRay: {why}\n")

    def _replace(self, name: str, content: bytes) -> None:
        if goes_home(name, self._leaves):
            draft = self._home / f".{name}"
            draft.write_bytes(content)
            draft.replace(self._home / name)

    def _left_here(self) -> list[str]:
        return [path.name for path in self._home.iterdir() if goes_home(path.name, self._leaves)]

    def _cancel(self, status: Status) -> None:
        with contextlib.suppress(ProofmarkError):
            self._driver.ask("cancel", self.name)
        self._end(status)

    def _end(self, status: Status) -> None:
        self._status = status
        with contextlib.suppress(ProofmarkError):
            self._launcher.forget(self.name)
        self._file = self._file.end(status)


def _orders(job: Job) -> dict[str, Any]:
    layout = HostLayout(f"{HERE}/run", f"{HERE}/code", f"{HERE}/cache", None)
    given = handed_on(tidy_environment(Path(layout.cache_dir)), passing())
    environment = {**given, **marked(""), "PYTHONPATH": layout.code}  # each execution draws a mark of its own
    return {
        "module": job.module,
        "environment": environment,
        "spec": job.spec.moved(layout).text(),
        "leaves": list(job.leaves),
        "results": list(job.results),
        "beats": list(job.beats),
        "marks": (MARK, WITHIN),
    }
