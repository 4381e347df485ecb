"""Simulated hosts: `python -m benchmarks.simulated.hosts SOCKET` forks a far end for each caller of the socket.

A caller, which stands for ssh, hands over its standard streams and the host's name. What serves it is the far end as
every host has it, in a process of its own; only its interpreter and modules are shared, and `/proc` shows it no more
than what it started itself. The node's agent is a shell script that writes logs of a real one's size.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import sys
import time
from pathlib import Path
from typing import Any

from proofmark.launch.cluster.node import Node
from proofmark.launch.far_end import child, server

NPROC = 8
STEPS = 100
"""Notes of its steps that a rank leaves, of ten steps each."""
READINGS = 60
"""Readings of a node's monitor, one a second."""

CALL = """
import array, os, socket, sys
host = socket.socket(socket.AF_UNIX)
host.connect(sys.argv[1])
streams = array.array("i", [0, 1, 2])
host.sendmsg([sys.argv[2].encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
nothing = os.open(os.devnull, os.O_RDWR)
os.dup2(nothing, 0), os.dup2(nothing, 1)
host.recv(1)
"""
"""Stands for ssh: lives as long as the host's far end."""

INTERPRETER = """#!/bin/sh
[ "$2" = proofmark.training.node.agent ] || exec {python} "$@"
node=$4
cd "${{3%/*}}/noderank$node" || exit 1
cp {folder}/agent.jsonl .
: < {folder}/go
first=$((node * {nproc}))
tee $(seq -f rank%.0f.jsonl $first $((first + {last}))) < {folder}/rank.jsonl > {null}
cp {folder}/monitor.jsonl .
"""
"""What a host has for Python. As an agent it says that it is there, waits for the others, and writes its logs."""


class SimulatedHost(server.FarEnd):
    """A far end with a work directory of its own; code that one host has got, all have."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def order_open(self, body: bytes, work_dir: str) -> dict[str, Any]:
        """As the far end does it, one folder further down."""
        own = Path(work_dir) / self._name
        own.mkdir(parents=True, exist_ok=True)
        for shared in ("code", "objects"):
            (Path(work_dir) / shared).mkdir(exist_ok=True)
            if not (own / shared).exists():
                (own / shared).symlink_to(Path(work_dir) / shared)
        return super().order_open(body, str(own))


def node(folder: Path, number: int) -> Node:
    """A simulated host as a launcher takes it."""
    name = f"simulated{number}"
    return Node(name, "127.0.0.1", (sys.executable, "-I", "-S", "-c", CALL, str(folder / "socket"), name))


def furnish(folder: Path) -> None:
    """Lay out what all simulated hosts share."""
    host = {"name": "simulated", "system": "Linux", "processor": "simulated", "cores": 64, "memory_bytes": 2**40}
    (folder / "agent.jsonl").write_text(_line("agent_begin", 0, **host))
    (folder / "rank.jsonl").write_text("".join(_rank_log()))
    (folder / "monitor.jsonl").write_text("".join(_readings()))
    os.mkfifo(folder / "go")
    program = folder / "python"
    names = {"folder": folder, "python": sys.executable, "nproc": NPROC, "last": NPROC - 1, "null": os.devnull}
    program.write_text(INTERPRETER.format(**names))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


BEGUN = time.time()


def _line(kind: str, seconds: float, **fields: Any) -> str:
    event = {"event": kind, "time": BEGUN + seconds, "clock": int(seconds * 1e9), **fields}
    return json.dumps(event, separators=(",", ":")) + "\n"


def _rank_log() -> list[str]:
    """What a trainer writes: ten seconds of initialisation, then a step every tenth of a second."""

    def totals(step: int) -> dict[str, Any]:
        seconds = step / 10
        parts = {"data": 0.04, "compute": 0.8, "evaluation": 0.1, "checkpoint": 0.01}
        spent = {f"{part}_seconds": share * seconds for part, share in parts.items()}
        communication = {"seconds": seconds / 100, "of": seconds / 10, "steps": step // 10, "reason": None}
        fields = {"epoch": 0, "step": step, "samples": 64 * step, "train_seconds": seconds}
        return {**fields, **spent, "communication": communication}

    lines = [_line("init_begin", 0), _line("model", 1, parameters=25_000_000)]
    lines += [_line("flops", 2, counted=1.2e10), _line("optimizer", 3, name="SGD"), _line("init_end", 10)]
    lines += [_line("train_begin", 10, steps=0, samples=0), _line("epoch_begin", 10, epoch=0)]
    for note in range(1, STEPS + 1):
        step = 10 * note
        noted = {"first": step - 9, "losses": [1 / (step + n) for n in range(10)], "learning_rate": 0.1}
        lines.append(_line("steps", 10 + step / 10, **totals(step), **noted, total_steps=10 * STEPS))
        if note % 20 == 0:
            metric = {"metric": note / STEPS, "samples_evaluated": 10_000, "took_seconds": 1.0}
            lines.append(_line("evaluation", 10 + step / 10, **totals(step), **metric))
    end = 10 * STEPS
    lines.append(_line("train_end", 10 + end / 10, **totals(end), converged=True))
    memory = {"host_peak_bytes": 2**34, "device_peak_bytes": 2**36, "device_total_bytes": 2**37}
    return [*lines, _line("memory", 11 + end / 10, **memory), _line("rank_end", 11 + end / 10, rank=0)]


def _readings() -> list[str]:
    """What a monitor writes, a second apart."""

    def reading(device: int, second: int) -> dict[str, Any]:
        sensors = {"utilization": 0.9, "power_w": 612.5, "temperature_c": 61.0, "clock_mhz": 1980.0, "throttled": []}
        return {"device": device, **sensors, "memory_used_bytes": 2**36, "energy_j": 612.5 * second}

    host = {"cpu": 0.31, "memory": 2**38, "package_energy_j": None}
    return [
        json.dumps({"time": BEGUN + s, **host, "devices": [reading(device, s) for device in range(NPROC)]}) + "\n"
        for s in range(READINGS)
    ]


def _own_processes() -> list[int]:
    """On a host of its own a far end would see no others' processes."""
    tasks = Path("/proc/self/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


def serve(path: Path) -> None:
    """Fork a far end for every caller, until this is ended."""
    child.processes = _own_processes
    os.nice(10)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen(4096)
        while True:
            caller, _ = door.accept()
            if os.fork():
                caller.close()
                continue
            door.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            name, streams, _, _ = socket.recv_fds(caller, 200, 3)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            sys.stdout = sys.stderr
            SimulatedHost(name.decode()).serve()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
