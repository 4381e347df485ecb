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
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from benchmarks.scale.training import ROOT, Watch, launcher_on, timed, training_on
from benchmarks.simulated import hosts as simulated_hosts
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.controller import Controller
from proofmark.launch.cluster.node import Node, Tell
from reports.html import write_html

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


def measure(hosts: int, folder: Path) -> dict[str, float]:
    """One row: a training on simulated hosts from its submission to its report."""
    simulated_hosts.furnish(folder)
    run_dir = folder / "run"
    run_dir.mkdir()
    (folder / "work").mkdir()
    cluster = Cluster(work_dir=str(folder / "work"), python=str(folder / "python"))
    with _serving(folder), contextlib.closing(Controller()) as controller:
        training = training_on(hosts, launcher_on(Simulated(folder), cluster, controller), run_dir)
        watch = Watch(run_dir, folder, hosts)
        training.train()
        watch.end()
        controller.close()
    left, cpu, peak = time.monotonic(), sum(resource.getrusage(resource.RUSAGE_SELF)[:2]), _peak_mb()
    recorded, record = timed(training.finish)
    assert record.runs[0].failure is None, record.runs[0].failure.cause
    logs = list((run_dir / "round1").glob("noderank*/*.jsonl"))
    assert len(logs) == hosts * (simulated_hosts.NPROC + 2), f"{len(logs)} logs came home"
    home = max(log.stat().st_mtime for log in logs) + time.monotonic() - time.time()
    megabytes = sum(log.stat().st_size for log in logs) / 1e6
    reported, _ = timed(lambda: write_html([record], run_dir / "report.html"))
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
    full = ", ".join(f"{name} at {count} hosts" for name, count in room.items())
    grows = f"{COLUMNS[fastest]} grows fastest, as hosts ** {powers[fastest]:.1f}"
    return f"saturates first: {first} (full: {full}); {grows}; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"


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
