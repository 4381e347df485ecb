"""Where a job's nodes are, and how a command is started on each: over ssh, or right here."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from proofmark.errors import UsageError
from proofmark.launch.cluster.cluster_file import Cluster, Host

Tell = Callable[[str], None]
"""Takes what a user waits for, in one line."""

CONNECT_TIMEOUT = 10
"""Seconds until a host that does not answer cannot be reached."""


@dataclass(frozen=True)
class Node:
    """One node: its name for people, its address for the others, and the command that runs a program on it."""

    name: str
    address: str
    lead: tuple[str, ...] = ()
    through_shell: bool = False

    def command(self, program: Sequence[str]) -> list[str]:
        """What to start here so that `program` runs there. ssh hands one text to the far shell, so that is quoted."""
        return [*self.lead, shlex.join(program)] if self.through_shell else [*self.lead, *program]


class Nodes(Protocol):
    """Gives a job its nodes, and takes them back."""

    stay: bool
    """Whether the next job gets the same ones, and they can be kept in touch with until then."""

    async def take(self, count: int, tell: Tell) -> list[Node]:
        """Wait for `count` nodes.

        Raises:
            HostError: they are not to be had.
        """

    async def give_back(self) -> None:
        """Let go of them; nothing to do if none were taken."""

    async def gone(self) -> str | None:
        """Why the nodes were taken away, or None."""


class Here:
    """This machine, as one node."""

    stay = True

    async def take(self, count: int, tell: Tell) -> list[Node]:
        """The one that there is."""
        return [Node("this machine", "127.0.0.1")]

    async def give_back(self) -> None:
        """It stays."""

    async def gone(self) -> str | None:
        """It stays."""
        return None


class Ssh:
    """The hosts of a cluster file, the first ones first."""

    stay = True

    def __init__(self, cluster: Cluster, origin: str) -> None:
        """Take the file's hosts.

        Raises:
            UsageError: there are none, or a file that it names is not there.
        """
        if not cluster.hosts:
            raise UsageError(f"{origin}: hosts: expected at least one for --launcher ssh")
        for key in ("key", "known_hosts"):
            path = getattr(cluster, key)
            if path is not None and not Path(path).is_file():
                raise UsageError(f"{origin}: {key}: no such file: {path}")
        self.all = [_over_ssh(cluster, host) for host in cluster.hosts]

    async def take(self, count: int, tell: Tell) -> list[Node]:
        """The first `count`; the caller has seen to it that there are so many."""
        return self.all[:count]

    async def give_back(self) -> None:
        """They stay."""

    async def gone(self) -> str | None:
        """A host that goes is noticed by its connection."""
        return None


def _over_ssh(cluster: Cluster, host: Host) -> Node:
    settings = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": str(CONNECT_TIMEOUT),
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": "3",
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
    options += ["-p", str(host.port or cluster.port)]
    if cluster.key:
        options += ["-i", cluster.key, "-o", "IdentitiesOnly=yes"]
    if user := host.user or cluster.user:
        options += ["-l", user]
    return Node(host.address, host.address, (*options, "--", host.address), through_shell=True)
