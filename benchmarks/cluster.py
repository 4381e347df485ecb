"""`make scale`: a training on up to 1,024 hosts of 8 ranks each, whose hosts are simulated and whose rest is not.

The launcher, its connections, the collector and the report are the real ones; what they start is
`benchmarks.simulated_hosts`. Every row is a process of its own, whose memory, files and threads are its row's. All
hosts share this machine's cores with it, so that seconds are those of the whole simulation, and neither side gives the
other up for being late; `CPU, s` is what the controller itself took from its start until the last host was left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import simulated_hosts
from harness.case_file import TrainingParameters, load_case_file
from harness.cluster import connection
from harness.cluster.cluster_file import Cluster
from harness.cluster.code_tree import CodeTree
from harness.cluster.launcher import ClusterLauncher, Described, Means
from harness.cluster.node import Node, Tell
from harness.config import resolve
from harness.registry import find_vendor
from harness.training.run import PACKAGES, ScaleRun, TrainingOptions
from harness.training.scale import Scale
from reports.html import write_html

ROOT = Path(__file__).parents[1]
HOSTS = (1, 16, 64, 256, 1024)

COLUMNS = {
    "hosts": "hosts",
    "launch_s": "launch, s",
    "logs_mb": "logs, MB",
    "home_mb_s": "home, MB/s",
    "leave_s": "leave, s",
    "record_s": "record, s",
    "record_mb": "record, MB",
    "report_s": "report, s",
    "report_mb": "report, MB",
    "cpu_s": "CPU, s",
    "peak_mb": "peak, MB",
    "all_peak_mb": "with report, MB",
    "files": "open files",
    "threads": "threads",
}


class Simulated:
    """Simulated hosts as a launcher takes nodes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def take(self, count: int, tell: Tell) -> list[Node]:
        """As many as anybody wants."""
        return [simulated_hosts.node(self._folder, number) for number in range(count)]

    async def give_back(self) -> None:
        """They stay."""

    async def gone(self) -> str | None:
        """They stay."""
        return None


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
        while not self._over.wait(0.2):
            self.files = max(self.files, len(os.listdir("/proc/self/fd")))
            self.threads = max(self.threads, threading.active_count())
            if not self.launched and sum(1 for _ in self._logs.glob("noderank*/agent.jsonl")) == self._hosts:
                self.launched = time.monotonic()
                os.close(os.open(self._go, os.O_WRONLY))

    def end(self) -> None:
        """Stop looking."""
        self._over.set()
        self._thread.join()


def measure(hosts: int, folder: Path) -> dict[str, float]:
    """One row: a training on simulated hosts from its submission to its report."""
    connection.SILENCE = simulated_hosts.PATIENCE
    simulated_hosts.furnish(folder)
    run_dir = folder / "run"
    run_dir.mkdir()
    with _serving(folder):
        training = _training(hosts, folder, run_dir)
        watch = Watch(run_dir, folder, hosts)
        training.train()
        watch.end()
    left, cpu, peak = time.monotonic(), sum(resource.getrusage(resource.RUSAGE_SELF)[:2]), _peak_mb()
    recorded, record = _timed(training.finish)
    assert record.runs[0].failure is None, record.runs[0].failure.cause
    logs = list((run_dir / "round1").glob("noderank*/*.jsonl"))
    assert len(logs) == hosts * (simulated_hosts.NPROC + 2), f"{len(logs)} logs came home"
    home = max(log.stat().st_mtime for log in logs) + time.monotonic() - time.time()
    megabytes = sum(log.stat().st_size for log in logs) / 1e6
    reported, _ = _timed(lambda: write_html([record], run_dir / "report.html"))
    return {
        "hosts": hosts,
        "launch_s": watch.launched - watch.begun,
        "logs_mb": megabytes,
        "home_mb_s": megabytes / (home - watch.launched),
        "leave_s": left - home,
        "record_s": recorded,
        "record_mb": (run_dir / "record.json").stat().st_size / 1e6,
        "report_s": reported,
        "report_mb": (run_dir / "report.html").stat().st_size / 1e6,
        "cpu_s": cpu,
        "peak_mb": peak,
        "all_peak_mb": _peak_mb(),
        "files": watch.files,
        "threads": watch.threads,
    }


def _training(hosts: int, folder: Path, run_dir: Path) -> ScaleRun:
    suites, scale = ROOT / "suites" / "training", Scale(hosts, simulated_hosts.NPROC)
    file = load_case_file(
        suites / "resnet50.yaml", "training", "embedded", suites / "contract.yaml", TrainingParameters
    )
    config = resolve(file, "cpu", []).config
    described = Described("cpu", config.precision, "")
    cluster = Cluster(work_dir=str(folder / "work"), python=str(folder / "python"))
    (folder / "work").mkdir()
    means = Means(Simulated(folder), cluster, CodeTree.of(ROOT, ("harness",)), PACKAGES, described)
    vendor, options = find_vendor("cpu", ROOT / "vendors"), TrainingOptions()
    return ScaleRun(config, (), scale, vendor, ("", ""), run_dir, ClusterLauncher(means), options, lambda told: None)


@contextlib.contextmanager
def _serving(folder: Path) -> Iterator[None]:
    door = folder / "socket"
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.simulated_hosts", str(door)], cwd=ROOT)
    try:
        while not door.exists():
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.monotonic()
    result = work()
    return time.monotonic() - begun, result


def _peak_mb() -> float:
    """Of this process alone; what getrusage says begins with its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


def scale(sizes: Sequence[int]) -> None:
    """Print a row for each number of hosts."""
    print(" | ".join(COLUMNS.values()), flush=True)
    for hosts in sizes:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "benchmarks.cluster", "--measure", str(hosts), folder]
            ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        row = json.loads(ran.stdout.splitlines()[-1])
        print(" | ".join(f"{row[key]:>{len(name)}.4g}" for key, name in COLUMNS.items()), flush=True)


def main() -> None:
    """Print the table, or measure one row of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS)
    parser.add_argument("--measure", nargs=2)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(int(asked.measure[0]), Path(asked.measure[1]))))
    else:
        scale(asked.hosts)


if __name__ == "__main__":
    main()
