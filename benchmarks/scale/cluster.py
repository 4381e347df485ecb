"""`make scale`: a training on up to 1,024 hosts of 8 ranks each, whose hosts are simulated and whose rest is not.

The launcher, its connections, the collector and the report are the real ones; what they start is
`benchmarks.simulated.hosts`. Every row is a process of its own, whose memory, files and threads are its row's. All
hosts share this machine's cores with it, so that seconds are those of the whole simulation, and neither side gives the
other up for being late; `CPU, s` is what the controller itself took from its start until the last host was left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.simulated import hosts as simulated_hosts
from proofmark.launch.cluster import connection
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.cluster.controller import Controller
from proofmark.launch.cluster.launcher import ClusterLauncher
from proofmark.launch.cluster.link import Described, HostSetup
from proofmark.launch.cluster.node import Node, Nodes, Tell
from proofmark.launch.launchers.ssh import Ssh
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import resolve
from proofmark.rules.scale import Scale
from proofmark.training.case import TrainingParameters
from proofmark.training.run import PACKAGES, ScaleRun, TrainingOptions
from proofmark.vendor.registry import find_vendor
from reports.html import write_html
from tests.cluster.netns import Hosts

ROOT = Path(__file__).parents[2]
HOSTS = (1, 16, 64, 256, 1024)
SSH_HOSTS, PAIRS = 16, 5
EXCHANGES = ("sntrup761x25519-sha512@openssh.com", "curve25519-sha256")
"""OpenSSH's choice, which a quantum computer could not undo either, and the one before it."""

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
GROWING = ("launch_s", "leave_s", "record_s", "record_mb", "report_s", "report_mb", "cpu_s", "peak_mb")


class Simulated:
    """Simulated hosts as a launcher takes nodes."""

    stay = True

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


def measure(hosts: int, folder: Path) -> dict[str, float]:
    """One row: a training on simulated hosts from its submission to its report."""
    connection.SILENCE = simulated_hosts.PATIENCE
    simulated_hosts.furnish(folder)
    run_dir = folder / "run"
    run_dir.mkdir()
    (folder / "work").mkdir()
    cluster = Cluster(work_dir=str(folder / "work"), python=str(folder / "python"))
    with _serving(folder), contextlib.closing(Controller()) as controller:
        training = _training(hosts, _launcher(Simulated(folder), cluster, controller), run_dir)
        watch = Watch(run_dir, folder, hosts)
        training.train()
        watch.end()
        controller.close()
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


def _launcher(nodes: Nodes, cluster: Cluster, controller: Controller) -> ClusterLauncher:
    code = CodeTree.of(ROOT, ("proofmark", "vendors"))
    return ClusterLauncher(
        HostSetup(nodes, cluster, code, PACKAGES, Described("cpu", "fp32", "", None, False)), controller
    )


def _training(hosts: int, launcher: ClusterLauncher, run_dir: Path) -> ScaleRun:
    suites, scale = ROOT / "suites" / "training", Scale(hosts, simulated_hosts.NPROC)
    file = load_case_file(
        suites / "resnet50.yaml", "training", "embedded", suites / "contract.yaml", TrainingParameters
    )
    config = resolve(file, "cpu", []).config
    vendor, options = find_vendor("cpu", ROOT / "vendors"), TrainingOptions()
    return ScaleRun(config, (), scale, vendor, ("", ""), run_dir, launcher, options, lambda told: None)


def over_ssh(exchange: str) -> None:
    """Compare SSH_HOSTS real sshds with one, all on this machine: to look at them, to launch, and to collect.

    Args:
        exchange: how keys are exchanged; most of what a connection costs is that.
    """
    print(f"keys exchanged by {exchange}:")
    with tempfile.TemporaryDirectory() as name, Hosts(SSH_HOSTS, Path(name), KexAlgorithms=exchange) as hosts:
        folder = Path(name)
        simulated_hosts.furnish(folder)
        client, names = hosts.client_config(), [host.name for host in hosts.hosts]
        reached = {"key": str(client.key), "known_hosts": str(client.known_hosts), "port": hosts.hosts[0].port}
        there = {"user": "root", "work_dir": str(hosts.work), "python": str(folder / "python")}
        cluster = Cluster.model_validate({"hosts": names, **reached, **there})
        _session(SSH_HOSTS, cluster, folder / "first")  # code is sent once
        pairs = [_pair(cluster, folder, number) for number in range(PAIRS)]
    many, one = zip(*pairs, strict=True)
    for name, seconds in MEASURED.items():
        both = [(seconds(m), seconds(o)) for m, o in zip(many, one, strict=True)]
        told = ", ".join(f"{m:.1f} s : {o:.1f} s" for m, o in both)
        print(f"{name}: {SSH_HOSTS} ssh hosts take {statistics.median(m / o for m, o in both):.2f} times 1's ({told})")
    print(f"of which controller and ssh compute {_cpu(many):.1f} s : {_cpu(one):.1f} s")
    print(f"hosts and controller share {os.cpu_count()} cores; load {os.getloadavg()[0]:.0f}")


@dataclass(frozen=True)
class Session:
    """A session with one training on hosts that have the code already.

    Attributes:
        preflight: seconds to connect to all hosts, to look at them, and to ask them all.
        training: seconds to launch agents on them, and until all logs have come home and nothing of it is left there.
        leaving: seconds to let go of the hosts.
        cpu: seconds that the controller and its ssh computed.
    """

    preflight: float
    training: float
    leaving: float
    cpu: float


MEASURED: dict[str, Callable[[Session], float]] = {
    "preflight": lambda session: session.preflight,
    "launched and collected": lambda session: session.training,
    "all, with leaving them": lambda session: session.preflight + session.training + session.leaving,
}


def _pair(cluster: Cluster, folder: Path, number: int) -> tuple[Session, Session]:
    """Of many hosts and of one, in turns first."""
    order = (SSH_HOSTS, 1) if number % 2 else (1, SSH_HOSTS)
    ran = {count: _session(count, cluster, folder / f"{number}of{count}") for count in order}
    return ran[SSH_HOSTS], ran[1]


def _session(hosts: int, cluster: Cluster, run_dir: Path) -> Session:
    run_dir.mkdir()
    before = _cpu_seconds()
    with contextlib.closing(Controller()) as controller:
        launcher = _launcher(Ssh(cluster, "benchmark"), cluster, controller)
        preflight, reports = _timed(lambda: launcher.examine(hosts, print))
        assert not any(report.problems for report in reports)
        training = _training(hosts, launcher, run_dir)
        watch = Watch(run_dir, run_dir.parent, hosts)
        trained, _ = _timed(training.train)
        watch.end()
        left, _ = _timed(controller.close)
    failure = training.so_far().runs[0].failure
    assert failure is None, failure.cause
    return Session(preflight, trained, left, _cpu_seconds() - before)


def _cpu(sessions: Sequence[Session]) -> float:
    return statistics.median(session.cpu for session in sessions)


def _cpu_seconds() -> float:
    """Of this process and the ones that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


@contextlib.contextmanager
def _serving(folder: Path) -> Iterator[None]:
    door = folder / "socket"
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.simulated.hosts", str(door)], cwd=ROOT)
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
    """Print a row for each number of hosts, and what would not do for more."""
    rows = []
    print(" | ".join(COLUMNS.values()), flush=True)
    for hosts in sizes:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "benchmarks.scale.cluster", "--measure", str(hosts), folder]
            ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        rows.append(row := json.loads(ran.stdout.splitlines()[-1]))
        print(" | ".join(f"{row[key]:>{len(name)}.4g}" for key, name in COLUMNS.items()), flush=True)
    if len(rows) > 1:
        print(_saturation(*rows[-2:]))


def _saturation(few: dict[str, float], many: dict[str, float]) -> str:
    """Which limit of this machine the controller meets first, and which of its figures grows fastest with the hosts."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = {"files": (f"ulimit -n {files}", files), "peak_mb": ("memory", psutil.virtual_memory().total / 1e6)}
    hosts = many["hosts"] - few["hosts"]
    room = {name: int(limit * hosts / (many[key] - few[key])) for key, (name, limit) in limits.items()}
    first = min(room, key=lambda name: room[name])
    powers = {key: math.log(many[key] / few[key], many["hosts"] / few["hosts"]) for key in COLUMNS if key in GROWING}
    fastest = max(powers, key=lambda key: powers[key])
    told = ", ".join(f"{name} at {count} hosts" for name, count in room.items())
    grows = f"{COLUMNS[fastest]} grows fastest, as hosts ** {powers[fastest]:.1f}"
    return f"saturates first: {first} (full: {told}); {grows}; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"


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
        for exchange in EXCHANGES:
            over_ssh(exchange)


if __name__ == "__main__":
    main()
