"""A Ray cluster: one that runs, by its address, or one of this machine alone, which ends with the session."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

from proofmark.errors import ProofmarkError, UsageError, harmless
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.ray.driver_process import ANSWERS, Asked, DriverProcess
from proofmark.launch.ray.launcher import RayLauncher
from proofmark.vendor.hardware.processor import usable_cores

PROCESSOR, GPU = "CPU", "GPU"
"""Resources of every Ray: cores, and accelerators that it knows as such."""

REACHED, PROVES = 5.0, 60.0
"""Seconds in which an address must answer, and a Ray there prove to be one that can be talked to."""

SETTLES, LOOK = 5.0, 0.2
"""Seconds in which what has just ended lets go of what it used, and between two looks."""

_ADDRESS = re.compile(r"\[?([A-Za-z0-9_.:-]+?)\]?:(\d{1,5})")


class RayCluster:
    """The cluster that the session's driver is connected to, until it is closed.

    Attributes:
        ours: whether the session started it.
    """

    def __init__(self, address: str | None, resource: str, code: CodeTree, accelerated: bool = False) -> None:
        """Connect, or start one.

        Args:
            address: host and port of its first node; None for one of this machine's own.
            resource: as what Ray knows the devices of trials.
            code: what jobs import of this house.
            accelerated: whether those are others than the processor.

        Raises:
            UsageError: Ray is not installed, there is none at the address, it is of another version, or it has no such
                resource; one line.
        """
        if address is not None:
            _reach(address)
        where = "--launcher ray" if address is None else f"--ray-address {address}"
        self.ours, self._accelerated = address is None, accelerated
        self._resource, self._code = resource, code
        with _of_usage():
            self._driver: Asked = DriverProcess(address is None, PROVES, where)
            try:
                self._begin(address)
            except BaseException:
                self.close()
                raise

    def places(self, each: int, variable: str | None = None) -> int:
        """How many jobs of so many devices there is room for at a time, beside what others run; one at least, to wait.

        Raises:
            UsageError: for none; for several on a node, which nothing gives devices of their own; or the cluster is
                gone.
        """
        with _of_usage():
            rooms = self._rooms(each)
            if not sum(rooms):
                raise UsageError(f"devices_per_trial: no node of the Ray cluster has {each} {self._resource}")
            if self._accelerated and max(rooms) > 1:
                self._hold_apart(variable)
            return sum(rooms) if self.ours else max(1, self._free(each, sum(rooms)))

    def launcher(self, each: int, variable: str | None = None) -> RayLauncher:
        """A launcher of jobs of so many devices, which they have in the vendor's variable.

        Raises:
            UsageError: the cluster is gone, or its store has no room for the code.
        """
        with _of_usage():
            placed: dict[str, Any] = {"num_cpus": self._cores(each)}
            if self._resource == GPU:
                placed["num_gpus"] = each
            elif self._resource != PROCESSOR:
                placed["resources"] = {self._resource: each}
            numbers = self._accelerated and variable and self._resource in self._driver.ask("numbered")
            numbered = (self._resource, variable) if variable and numbers else None
            return RayLauncher(self._driver, self._code, placed, each > 1, numbered)

    def close(self) -> None:
        """Disconnect; a cluster of this machine's own ends."""
        self._driver.close()

    def _begin(self, address: str | None) -> None:
        if address is None:
            self._driver.ask("begin", usable_cores(), within=ANSWERS)
        else:
            self._driver.ask("connect", address, within=PROVES)
        if not sum(self._rooms(1)):
            where = address or "this machine"
            raise UsageError(
                f"--launcher ray: no node of {where} has the resource {self._resource}: name it by --ray-resource"
            )

    def _nodes(self) -> list[dict[str, float]]:
        """The resources of each living node that has devices."""
        return [each for each in self._driver.ask("nodes") if each.get(self._resource, 0) >= 1]

    def _cores(self, each: int) -> int:
        """Those that a job takes: of a processor all that the smallest node has, beside devices their share."""
        nodes = self._nodes()
        if self._resource == PROCESSOR:
            return int(min(node[PROCESSOR] for node in nodes))
        return int(min(node.get(PROCESSOR, 0) * each // node[self._resource] for node in nodes))

    def _rooms(self, each: int) -> list[int]:
        """How many jobs each node has room for."""
        if self._resource == PROCESSOR:
            return [int(node[PROCESSOR] // self._cores(each)) for node in self._nodes()]
        return [int(node[self._resource] // each) for node in self._nodes()]

    def _free(self, each: int, most: int) -> int:
        """For how many of at most so many jobs enough is free now, on all nodes together: Ray says no more."""
        takes, until = self._cores(each) if self._resource == PROCESSOR else each, time.monotonic() + SETTLES
        while True:
            found = int(self._driver.ask("free").get(self._resource, 0.0) // takes)
            if found >= most or time.monotonic() > until:
                return min(found, most)
            time.sleep(LOOK)

    def _hold_apart(self, variable: str | None) -> None:
        """Refuse what would have all of a node's jobs compute on its first devices."""
        if self._resource not in self._driver.ask("numbered"):
            why = f"of {self._resource} Ray does not say which: start the nodes with --num-gpus"
        elif variable is None:
            why = "the vendor has no visible_devices_variable"
        else:
            return
        raise UsageError(f"--launcher ray: trials that share a node can't be given devices of their own: {why}")


@contextlib.contextmanager
def _of_usage() -> Iterator[None]:
    """A Ray that can't be used is what the user has to mend."""
    try:
        yield
    except ProofmarkError as error:
        raise error if isinstance(error, UsageError) else UsageError(str(error)) from None


def _reach(address: str) -> None:
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found[2]) < 1 << 16:
        raise UsageError(harmless(f"--ray-address {address}: expected HOST:PORT of the cluster's first node"))
    try:
        socket.create_connection((found[1], int(found[2])), timeout=REACHED).close()
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        raise UsageError(harmless(f"--ray-address {address}: nothing answers there: {why}")) from None
