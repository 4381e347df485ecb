"""The hosts of a cluster file, over the system's own ssh."""

from __future__ import annotations

import math
import os
import shlex
from collections import Counter
from pathlib import Path

from proofmark.errors import UsageError
from proofmark.launch.cluster.cluster_file import Cluster, ClusterHost
from proofmark.launch.cluster.connection import GRACE
from proofmark.launch.cluster.node import CONNECT_TIMEOUT, Node, Nodes, Tell
from proofmark.launch.launchers import HostLauncher

ALIVE = 3
"""Signs of life that ssh asks a host for: it gives up after a third more silence than the session does, for when the
session is gone."""


class Ssh:
    """The hosts of a cluster file, the first ones first."""

    stay = True

    def __init__(self, cluster: Cluster, origin: str) -> None:
        """Take the file's hosts.

        Raises:
            UsageError: there are none, or files that it names are not there; all of it at once.
        """
        wrong = [] if cluster.hosts else ["hosts: expected at least one for --launcher ssh"]
        named = {"key": cluster.key, "known_hosts": cluster.known_hosts}
        wrong += [f"{key}: no such file: {path}" for key, path in named.items() if path and not Path(path).is_file()]
        if wrong:
            raise UsageError("\n".join(f"{origin}: {what}" for what in wrong))
        times = Counter(host.address for host in cluster.hosts)
        self.all = [_over_ssh(cluster, host, times[host.address] > 1) for host in cluster.hosts]

    async def take(self, count: int, tell: Tell) -> list[Node]:
        """The first `count` hosts; the caller has seen to it that there are so many."""
        return self.all[:count]

    async def give_back(self) -> None:
        """Do nothing: the hosts stay."""

    async def gone(self) -> str | None:
        """None: a host that goes is noticed by its connection."""
        return None


def _over_ssh(cluster: Cluster, host: ClusterHost, shares_address: bool) -> Node:
    """A host, named by its address, and by its port where another `shares_address`."""
    settings = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": str(CONNECT_TIMEOUT),
        "ServerAliveInterval": str(math.ceil((cluster.silence_timeout + GRACE) / ALIVE)),
        "ServerAliveCountMax": str(ALIVE),
        "ClearAllForwardings": "yes",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "ControlPath": "none",
        "LogLevel": "ERROR",
    }
    if cluster.known_hosts:
        settings["UserKnownHostsFile"] = shlex.quote(cluster.known_hosts)
        settings["GlobalKnownHostsFile"] = os.devnull
    options = ["ssh", "-T", *(part for key, value in settings.items() for part in ("-o", f"{key}={value}"))]
    port = host.port or cluster.port
    if port:
        options += ["-p", str(port)]
    if cluster.key:
        options += ["-i", cluster.key, "-o", "IdentitiesOnly=yes"]
    if user := host.user or cluster.user:
        options += ["-l", user]
    name = f"{host.address}, port {port}" if port and shares_address else host.address
    return Node(name, host.address, (*options, "--", host.address), through_shell=True)


class _OverSsh(HostLauncher):
    keys = frozenset({"hosts", "port", "user", "key", "known_hosts"})

    def count(self, cluster: Cluster) -> int:
        return len(cluster.hosts)

    def nodes(self, cluster: Cluster, origin: str) -> Nodes:
        return Ssh(cluster, origin)


launcher = _OverSsh()
