"""A Slurm cluster on this machine: munged, slurmctld and one slurmd for each node, all in one cell."""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from tests.cluster.cell import Cell
from tests.services import program
from tests.waiting import until

DAEMONS = ("munged", "slurmctld", "slurmd", "slurmscriptd", "slurmstepd")
SETUP = """
folder=$1; shift
mount -t tmpfs tmpfs /run
mkdir /run/tmp
munged --force --socket "$folder/munge.socket" --key-file "$folder/munge.key" --pid-file "$folder/munged.pid" \
  --log-file "$folder/munged.log" --seed-file "$folder/munged.seed"
slurmctld -f "$SLURM_CONF"
for node; do slurmd -f "$SLURM_CONF" -N "$node"; done
"""
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool.%n
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={folder}/prolog
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=1
MessageTimeout=90
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2\n"
PROLOG = "#!/bin/sh\necho export TMPDIR=/run/tmp\n"
"""What Slurm kills leaves files; they go with the nodes."""


@dataclass(frozen=True)
class Job:
    """A line of squeue."""

    number: int
    state: str
    """In full: "PENDING", "RUNNING", "COMPLETING"."""
    name: str
    nodes: str
    """As Slurm writes them: "n[1-2]"."""


class Slurm:
    """Nodes n1, n2, ... of two CPUs each. Clients need the variables in `environment`."""

    def __init__(self, folder: Path, nodes: int = 2) -> None:
        for daemon in DAEMONS[:3]:
            program(daemon, "apt-get install munge slurm-wlm")
        self.folder = folder
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        (folder / "state").mkdir()
        (folder / "munge.key").touch(mode=0o600)
        (folder / "munge.key").write_bytes(os.urandom(128))
        host, ports = socket.gethostname().split(".")[0], _free_ports(1 + nodes)
        lines = [NODE.format(name=name, host=host, port=port) for name, port in zip(self.nodes, ports[1:], strict=True)]
        written = CONFIGURATION.format(host=host, port=ports[0], folder=folder) + "".join(lines)
        (folder / "slurm.conf").write_text(written)
        (folder / "prolog").write_text(PROLOG)
        (folder / "prolog").chmod(0o755)
        self._cell = Cell(setup=SETUP, arguments=(str(folder), *self.nodes), environment=self.environment)
        try:
            until(self._idle, f"idle nodes (see {folder}/*.log)", every=0.2)
        except BaseException:
            self.close()
            raise

    def jobs(self) -> list[Job]:
        """What waits, runs or ends."""
        lines = self._ask("squeue", "--noheader", "--format=%i|%T|%j|%N").splitlines()
        return [Job(int(number), *rest) for number, *rest in (line.split("|") for line in lines)]

    def cancel_all(self) -> None:
        """Cancel every job, and wait until all nodes are free of them."""
        self._ask("scancel", "--user=root")
        until(lambda: not self.jobs(), "cancelled jobs to end", every=0.2)

    def end_time_of_all(self) -> None:
        """Let every job's time be over. Slurm looks at that twice a minute."""
        for job in self.jobs():
            self._ask("scontrol", "update", f"JobId={job.number}", "EndTime=now")

    def drain(self, node: str) -> None:
        """Let a node take no more jobs."""
        self._ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")

    def fail(self, node: str) -> None:
        """Declare a node dead: the jobs that it is part of end."""
        self._ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")

    def resume(self, *nodes: str, idle: bool = True) -> None:
        """Let drained or failed nodes take jobs again, and wait until they and all others are idle."""
        # Slurm refuses it for a failed node that has come back by itself: what counts is that all are idle.
        self._run("scontrol", "update", f"NodeName={','.join(nodes)}", "State=RESUME")
        until(lambda: not idle or self._idle(), "idle nodes", every=0.2)

    def processes(self) -> list[psutil.Process]:
        """What runs on the nodes besides Slurm's own daemons."""
        return [process for process in self._cell.processes() if process.info["name"] not in DAEMONS]

    def close(self) -> None:
        """Kill the daemons and everything on the nodes."""
        self._cell.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _idle(self) -> bool:
        states = self._run("sinfo", "--noheader", "--Node", "--format=%T").stdout.split()
        return states == ["idle"] * len(self.nodes)

    def _ask(self, *command: str) -> str:
        asked = self._run(*command)
        assert asked.returncode == 0, f"{' '.join(command)}: {asked.stderr}"
        return asked.stdout

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | self.environment
        return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


def _free_ports(number: int) -> list[int]:
    """Consecutive ports that nobody uses, from below those that the kernel hands out by itself."""
    first = 20_000 + os.getpid() % 1000 * 10
    for start in range(first, 32_000, number):
        ports = list(range(start, start + number))
        if all(_free(port) for port in ports):
            return ports
    raise AssertionError(f"no {number} free ports above {first}")


def _free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", port))
        except OSError:
            return False
    return True
