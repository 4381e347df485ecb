"""A driver of a Ray cluster: `python -m proofmark.launch.ray.driver WHOSE SOCKET`, which does what it is asked.

A process of its own, since Ray's code ends the process that it is in: for a cluster of another version, and a minute
after one is gone. What crosses the socket are plain values; what Ray knows is kept here, by numbers and by jobs' names.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import secrets
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from proofmark.errors import named
from proofmark.launch.cluster.program import SHARED
from proofmark.launch.ray.task import Heard, Inbox, run_job
from proofmark.process.environment import PASSES, passes
from proofmark.process.lifetime import end_own_group, leave, tidy_at_exit

OWN, FOUND = "own", "found"
"""Whose cluster it is: this machine's, which it starts, or one that runs."""

NOT_INSTALLED = "Ray is not installed here: python -m pip install -c constraints.txt ray"

SENT = ("proofmark.launch.ray.task", "proofmark.launch.far_end", *SHARED)
"""Modules that tasks have by value."""

QUIET: Mapping[str, str] = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_task_oom_retries": "0",
    "RAY_worker_niceness": "0",
}
"""What keeps Ray from telling its makers, and from what it would do otherwise of its own accord: at its low priority a
task on a machine that does anything else may not get on for minutes."""

GUARD = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")
"""Variables by which every call of a Ray must know a secret: its processes listen on all of the machine's addresses. It
reads them when it is imported."""

PATIENCE = 15.0
"""Seconds in which it leaves its cluster when the session is gone."""


class Driver:
    """What is asked of a Ray: every method takes and returns plain values."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._numbers = itertools.count()
        self._kept = dict[int, Any]()
        self._tasks = dict[str, tuple[Any, Any]]()

    def answer(self, method: str, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        """Do as a method does; whether it could, and what it returns, or why not in a line."""
        try:
            return True, getattr(self, method)(*arguments)
        except self._ray.exceptions.RayError as error:
            return False, named(error)
        except (OSError, RuntimeError, ValueError) as error:
            return False, f"{type(error).__name__}: {' '.join(str(error).split())}"

    def connect(self, address: str) -> None:
        """To a cluster that runs."""
        self._ray.init(address, log_to_driver=False, logging_level="ERROR")

    def begin(self, cores: int) -> None:
        """Start one of this machine alone, which ends with this process, and its files with this process's."""
        self._ray.init(
            "local",
            num_cpus=cores,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            _node_ip_address="127.0.0.1",
            _temp_dir=tempfile.gettempdir(),
        )

    def nodes(self) -> list[dict[str, float]]:
        """The resources of each living node."""
        return [dict(node["Resources"]) for node in self._ray.nodes() if node["Alive"]]

    def free(self) -> dict[str, float]:
        """What nobody uses of the resources of all nodes together."""
        return dict(self._ray.available_resources())

    def numbered(self) -> list[str]:
        """The resources of which a task is told by their numbers which ones it has."""
        return list(self._ray.get_runtime_context().get_accelerator_ids())

    def put(self, value: dict[str, bytes]) -> int:
        """Keep files in Ray's store; their number."""
        return self._keep(self._ray.put(value))

    def drop(self, number: int) -> None:
        """Keep what has that number no longer."""
        del self._kept[number]

    def inbox(self) -> int:
        """Start what hears tasks, beside this process; its number."""
        here = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            self._ray.get_runtime_context().get_node_id(), soft=False
        )
        return self._keep(self._ray.remote(num_cpus=0, scheduling_strategy=here)(Inbox).remote())

    def take(self, inbox: int) -> list[Heard]:
        """What it has heard since the last time."""
        heard: list[Heard] = self._ray.get(self._kept[inbox].take.remote())
        return heard

    def tell(self, inbox: int, job: str, line: str) -> None:
        """Write a line to a job's standard input, once it has one."""
        self._kept[inbox].say.remote(job, line)

    def stop(self, inbox: int, job: str) -> None:
        """Ask a job to end."""
        self._kept[inbox].stop.remote(job)

    def submit(
        self,
        inbox: int,
        job: str,
        options: Mapping[str, Any],
        together: Mapping[str, float] | None,
        orders: Mapping[str, Any],
        code: int,
        brought: int,
    ) -> None:
        """Have Ray place a job.

        Args:
            inbox: the number of what hears it.
            job: by which it is known here.
            options: of its task.
            together: what it takes of one node, where that is more than one device.
            orders: what it is to do.
            code: the number of the files that it imports.
            brought: the number of the files that it reads.
        """
        group, placed = None, dict(options)
        if together:
            group = self._ray.util.placement_group([dict(together)], strategy="STRICT_PACK")
            strategies = self._ray.util.scheduling_strategies
            placed["scheduling_strategy"] = strategies.PlacementGroupSchedulingStrategy(group)
        task = self._ray.remote(run_job).options(**placed)
        kept = self._kept
        self._tasks[job] = (task.remote(kept[inbox], job, orders, kept[code], kept[brought]), group)

    def end_of(self, job: str, within: float) -> dict[str, Any] | None:
        """What a job's task came to, or why that is unknown; None for one that runs, or waits, for so many seconds."""
        task, _ = self._tasks[job]
        done, _ = self._ray.wait([task], timeout=within)
        if not done:
            return None
        try:
            return dict(self._ray.get(task))
        except self._ray.exceptions.RayError as error:
            return {"lost": named(error)}

    def cancel(self, job: str) -> None:
        """Have Ray kill a job's task."""
        self._ray.cancel(self._tasks[job][0], force=True)

    def forget(self, inbox: int, job: str) -> None:
        """Release what is kept for a job that has ended."""
        _, group = self._tasks.pop(job)
        if group is not None:
            self._ray.util.remove_placement_group(group)
        self._kept[inbox].forget.remote(job)

    def close(self) -> None:
        """Leave the cluster; one of this machine alone ends."""
        self._ray.shutdown()

    def _keep(self, value: Any) -> int:
        number = next(self._numbers)
        self._kept[number] = value
        return number


def main() -> None:
    """Answer until the session hangs up.

    What it sets in its environment is no word to its own children that theirs may have it too.
    """
    tidy_at_exit()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_session, daemon=True).start()
    whose, at = sys.argv[1:]
    os.environ |= {key: os.environ.get(key, value) for key, value in QUIET.items()}
    if whose == OWN:
        _drop_secrets()  # all of Ray's processes have what this one has
        os.environ |= dict(zip(GUARD, ("token", secrets.token_hex(32)), strict=True))
    with Connection(int(at)) as session:
        os.set_inheritable(session.fileno(), False)
        try:
            driver = Driver(_ray())
        except ImportError:
            session.send((False, NOT_INSTALLED))
            return
        session.send((True, None))
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                session.send(driver.answer(*session.recv()))
        driver.answer("close", ())


def _drop_secrets() -> None:
    """The session's environment may have a CI's tokens. Those that the user lets pass by name do."""
    named = os.environ.get(PASSES, "").split(",")
    for name, value in list(os.environ.items()):
        if not passes(name, ("*", *named), value):
            del os.environ[name]


def _end_with_session() -> None:
    """Where Ray's code lets go of this process no more."""
    sys.stdin.buffer.read()
    threading.Event().wait(PATIENCE)
    end_own_group()


def _ray() -> Any:
    ray = importlib.import_module("ray")  # an extra
    for name in ("exceptions", "util.scheduling_strategies"):
        importlib.import_module(f"ray.{name}")
    for package in SENT:
        ray.cloudpickle.register_pickle_by_value(importlib.import_module(package))
    return ray


if __name__ == "__main__":
    main()
    leave(0)
