"""A Ray cluster: one that runs, by its address, or one of this machine alone, which ends with the session."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from proofmark.errors import UsageError, harmless
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.cluster.program import SHARED
from proofmark.launch.ray.launcher import RayLauncher, in_a_line
from proofmark.process.temporary import temporary_directory
from proofmark.vendor.hardware.machine import usable_cores

INSTALL = "python -m pip install -c constraints.txt ray"

PROCESSOR, GPU = "CPU", "GPU"
"""Resources of every Ray: cores, and accelerators that it knows as such."""

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
"""Variables by which every call of a Ray must know a secret: its processes listen on all of the machine's addresses."""

REACHED, PROBED = 5.0, 60.0
"""Seconds in which an address must answer, and a Ray there prove to be one that can be talked to."""

_ADDRESS = re.compile(r"\[?([A-Za-z0-9_.:-]+?)\]?:(\d{1,5})")


class RayCluster:
    """The cluster that this process is connected to, until it is closed."""

    def __init__(self, address: str | None, resource: str, code: CodeTree) -> None:
        """Connect, or start one.

        Args:
            address: host and port of its first node; None for one of this machine's own.
            resource: as what Ray knows the devices of trials.
            code: what jobs import of this house.

        Raises:
            UsageError: Ray is not installed, there is none at the address, it is of another version, or it has no such
                resource; one line.
        """
        self._before = {key: os.environ.get(key) for key in (*QUIET, *GUARD)}
        os.environ |= {key: os.environ.get(key, value) for key, value in QUIET.items()}
        if address is None:
            os.environ |= dict(zip(GUARD, ("token", secrets.token_hex(32)), strict=True))
        self._ray = _ray()
        self._resource, self._code = resource, code
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        with _own_signals():
            if address is None:
                self._start()
            else:
                _probe(address)
                self._connect(address)
        if not self._places(1):
            where = address or "this machine"
            self.close()
            raise UsageError(
                f"--launcher ray: no node of {where} has the resource {resource}: name it by --ray-resource"
            )

    def places(self, each: int) -> int:
        """How many jobs of so many devices there is room for at a time.

        Raises:
            UsageError: for none.
        """
        room = self._places(each)
        if not room:
            raise UsageError(f"devices_per_trial: no node of the Ray cluster has {each} {self._resource}")
        return room

    def launcher(self, each: int) -> RayLauncher:
        """A launcher of jobs of so many devices.

        Raises:
            UsageError: the cluster is gone, or its store has no room for the code.
        """
        placed: dict[str, Any] = {"num_cpus": self._cores(each)}
        if self._resource == GPU:
            placed["num_gpus"] = each
        elif self._resource != PROCESSOR:
            placed["resources"] = {self._resource: each}
        with _one_line("its nodes"):
            try:
                return RayLauncher(self._ray, self._code, placed, together=each > 1)
            except self._ray.exceptions.RayError as error:
                raise RuntimeError(in_a_line(error)) from None

    def close(self) -> None:
        """Disconnect; a cluster of this machine's own ends."""
        self._ray.shutdown()
        if self._temporary is not None:
            self._temporary.cleanup()
        for key, value in self._before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value

    def _start(self) -> None:
        self._temporary = temporary_directory()
        with _one_line("this machine"):
            self._ray.init(
                "local",
                num_cpus=usable_cores(),
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                _node_ip_address="127.0.0.1",
                _temp_dir=self._temporary.name,
            )

    def _connect(self, address: str) -> None:
        with _one_line(address):
            self._ray.init(address, log_to_driver=False, logging_level="ERROR")

    def _nodes(self) -> list[dict[str, float]]:
        """The resources of each living node that has devices."""
        alive = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return [each for each in alive if each.get(self._resource, 0) >= 1]

    def _cores(self, each: int) -> int:
        """Those that a job takes: of a processor all that the smallest node has, beside devices their share."""
        nodes = self._nodes()
        if self._resource == PROCESSOR:
            return int(min(node[PROCESSOR] for node in nodes))
        return int(min(node.get(PROCESSOR, 0) * each // node[self._resource] for node in nodes))

    def _places(self, each: int) -> int:
        if self._resource == PROCESSOR:
            return sum(int(node[PROCESSOR] // self._cores(each)) for node in self._nodes())
        return sum(int(node[self._resource] // each) for node in self._nodes())


def _ray() -> Any:
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise UsageError(f"--launcher ray: Ray is not installed here: {INSTALL}") from None
    for name in ("exceptions", "util.scheduling_strategies"):
        importlib.import_module(f"ray.{name}")
    for package in ("proofmark.launch.ray.task", "proofmark.launch.far_end", *SHARED):
        ray.cloudpickle.register_pickle_by_value(importlib.import_module(package))
    return ray


def _probe(address: str) -> None:
    """Whether this Python's Ray can talk to what is there, found out by another process: Ray's own code ends the one
    that it is in, or waits for long, where it can't."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found[2]) < 1 << 16:
        raise UsageError(harmless(f"--ray-address {address}: expected HOST:PORT of the cluster's first node"))
    try:
        socket.create_connection((found[1], int(found[2])), timeout=REACHED).close()
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        raise UsageError(harmless(f"--ray-address {address}: nothing answers there: {why}")) from None
    command = [sys.executable, "-P", "-m", "proofmark.launch.ray.probe", address]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=PROBED, text=True)
    except subprocess.TimeoutExpired:
        raise UsageError(harmless(f"--ray-address {address}: no Ray answers there in {PROBED:g} s")) from None
    if done.returncode != 0:
        said = [line for line in done.stdout.splitlines() if line.strip()]
        why = said[-1] if said else "Ray's own code failed: does the cluster have the same version of Ray?"
        if "Unauthenticated" in done.stderr:
            why = f"it expects another token: set {' and '.join(GUARD)} to the values with which it was started"
        raise UsageError(harmless(f"--ray-address {address}: {why}"))


@contextlib.contextmanager
def _one_line(where: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(harmless(f"--launcher ray: {where}: {' '.join(str(error).split())}")) from None


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the session's own handlers of signals, which Ray would replace."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
