"""`make scale`, the part over ssh: a training on sixteen real sshds, each in a network of its own, held against one."""

from __future__ import annotations

import contextlib
import os
import resource
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scale.training import Watch, launcher_on, timed, training_on
from benchmarks.simulated import hosts as simulated_hosts
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.controller import Controller
from proofmark.launch.launchers.ssh import Ssh
from tests.cluster.netns import Hosts

SSH_HOSTS, PAIRS = 16, 5
EXCHANGES = ("sntrup761x25519-sha512@openssh.com", "curve25519-sha256")
"""OpenSSH's choice, which a quantum computer could not undo either, and the one before it."""


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
        times = ", ".join(f"{m:.1f} s : {o:.1f} s" for m, o in both)
        print(f"{name}: {SSH_HOSTS} ssh hosts take {statistics.median(m / o for m, o in both):.2f} times 1's ({times})")
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
        launcher = launcher_on(Ssh(cluster, "benchmark"), cluster, controller)
        preflight, reports = timed(lambda: launcher.examine(hosts, print))
        assert not any(report.problems for report in reports)
        training = training_on(hosts, launcher, run_dir)
        watch = Watch(run_dir, run_dir.parent, hosts)
        trained, _ = timed(training.train)
        watch.end()
        left, _ = timed(controller.close)
    failure = training.so_far().runs[0].failure
    assert failure is None, failure.cause
    return Session(preflight, trained, left, _cpu_seconds() - before)


def _cpu(sessions: Sequence[Session]) -> float:
    return statistics.median(session.cpu for session in sessions)


def _cpu_seconds() -> float:
    """Of this process and the ones that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main() -> None:
    """Print what sixteen cost, by either exchange."""
    for exchange in EXCHANGES:
        over_ssh(exchange)


if __name__ == "__main__":
    main()
