"""A training on many hosts, as `make scale` watches it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.simulated import hosts as simulated_hosts
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.cluster.controller import Controller
from proofmark.launch.cluster.launcher import ClusterLauncher
from proofmark.launch.cluster.link import HostSetup
from proofmark.launch.cluster.node import Nodes
from proofmark.launch.hosts.request import DescribeRequest
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import resolve
from proofmark.rules.scale import Scale
from proofmark.training.case import TrainingCase, TrainingParameters
from proofmark.training.run import ScaleRun, TrainingOptions
from proofmark.vendor.registry import find_vendor

ROOT = Path(__file__).parents[2]


class Watch:
    """Lets the agents begin once all have said that they are there, and sees how much of the controller is in use."""

    def __init__(self, run_dir: Path, folder: Path, hosts: int) -> None:
        self._logs, self._go, self._hosts = run_dir / "round1", folder / "go", hosts
        self.begun, self.launched = time.monotonic(), 0.0
        self.files = self.threads = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            self.files = max(self.files, len(os.listdir("/proc/self/fd")))
            self.threads = max(self.threads, threading.active_count())
            if not self.launched and sum(1 for _ in self._logs.glob("noderank*/agent.jsonl")) == self._hosts:
                self.launched = time.monotonic()
                os.close(os.open(self._go, os.O_WRONLY))

    def end(self) -> None:
        """Stop looking."""
        self._over.set()
        self._thread.join()


def launcher_on(nodes: Nodes, cluster: Cluster, controller: Controller) -> ClusterLauncher:
    """A launcher to nodes, by one controller."""
    code = CodeTree.of(ROOT, ("proofmark", "vendors"))
    return ClusterLauncher(
        HostSetup(nodes, cluster, code, TrainingCase.packages, DescribeRequest("cpu", "fp32", "", None, False)),
        controller,
    )


def training_on(hosts: int, launcher: ClusterLauncher, run_dir: Path) -> ScaleRun:
    """A training of a case on as many hosts, yet to be started."""
    suites, scale = ROOT / "suites" / "training", Scale(hosts, simulated_hosts.NPROC)
    file = load_case_file(
        suites / "resnet50.yaml", "training", "embedded", suites / "contract.yaml", TrainingParameters
    )
    resolution = resolve(file, "cpu", [])
    vendor, options = find_vendor("cpu", ROOT / "vendors"), TrainingOptions()
    packages = TrainingCase.packages
    return ScaleRun(resolution, scale, vendor, ("", ""), run_dir, launcher, options, lambda report: None, packages)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that it takes, and what it returns."""
    begun = time.monotonic()
    result = work()
    return time.monotonic() - begun, result
