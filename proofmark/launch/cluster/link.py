"""A host as a job has it: how it is reached, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.cluster.connection import Connection
from proofmark.launch.cluster.container.image import ContainerImage
from proofmark.launch.cluster.container.keeper import Keeper
from proofmark.launch.cluster.node import Node, Nodes
from proofmark.launch.cluster.node_logs import NodeLogs
from proofmark.launch.cluster.preflight import HostReport
from proofmark.launch.cluster.program import far_end
from proofmark.launch.engine_container import EngineContainer
from proofmark.launch.hosts.request import DescribeRequest
from proofmark.process.environment import handed_on, passing

CONSTRAINTS = "constraints.txt"
"""Pins of what is installed, in the tree's root."""


@dataclass(frozen=True)
class HostSetup:
    """How a job gets onto its hosts."""

    nodes: Nodes
    cluster: Cluster
    code: CodeTree
    packages: tuple[str, ...]
    described: DescribeRequest
    data_dirs: tuple[str, ...] = ()
    weights: str | None = None
    launcher: str = "local"
    """Its name, for a job's file."""
    container: ContainerImage | None = None
    engines_alone: bool = False
    """Whether engines alone are put into containers: all else runs on the hosts themselves."""

    def connection(self, logs: NodeLogs) -> Connection:
        """One that is not open yet."""
        return Connection(logs, self.cluster.answer_timeout, self.cluster.silence_timeout)

    async def far_end(self, node: Node, python: str) -> tuple[list[str], dict[str, Any]]:
        """What starts a far end on a node with an interpreter, and what a record should say of its container.

        Raises:
            HostError: the container's image is not to be had there.
        """
        program = [*_starting(self.cluster), *far_end(python)]
        if self.container is None or self.engines_alone:
            return node.command(program), {}
        read = [*self.data_dirs, *filter(None, [self.weights])]
        lead, facts = await self.container.prepare(node, self.cluster, read)
        return node.command([*lead, *program]), facts

    @property
    def far_ends_stay(self) -> bool:
        """Whether a far end does for the session's next job too: a container is started anew for each."""
        return self.nodes.stay and (self.container is None or self.engines_alone)

    async def part_from(self, link: HostLink) -> None:
        """Let go of a host, and of a container that may have outlived the connection to it."""
        await link.connection.close()
        if self.container and link.keeper:
            await link.keeper.end(removed=await self.container.remove(link.node, link.container["name"]))
            link.keeper = None


@dataclass
class HostLink:
    """A node, its connection, and what is known of it."""

    node: Node
    connection: Connection
    report: HostReport
    python: str
    work_dir: str = ""
    code: str = ""
    container: dict[str, Any] = field(default_factory=dict)
    """What a record should say of it; empty if there is none."""
    engine_container: EngineContainer | None = None
    """What engines are put into there, where they are alone."""
    keeper: Keeper | None = None
    """Removes the container in which all is."""

    @property
    def name(self) -> str:
        """The host's name, for people."""
        whole = self.container and self.engine_container is None
        return f"{self.node.name}, container {self.container['name']}" if whole else self.node.name

    def facts(self) -> dict[str, Any]:
        """What is known of the host, for the run's record."""
        report, kept = self.report, ("hostname", "python", "versions", "chip", "host", "devices", "package")
        facts = {key: report.facts[key] for key in kept if key in report.facts}
        facts |= {"container": self.container} if self.container else {}
        known = {"node": report.node, "name": report.name, "here": not self.node.lead}
        return {**known, "skew": report.skew, "round_trip": report.round_trip, **facts}


STARTING = ("LD_LIBRARY_PATH", "PATH", "PYTHONPATH")
"""Variables without which a host's interpreter may not start, or not find what is installed."""


def _starting(cluster: Cluster) -> list[str]:
    """What gives those of the cluster file to whatever command follows; nothing where it has none."""
    given = [f"{name}={cluster.environment[name]}" for name in STARTING if name in cluster.environment]
    return ["env", *given] if given else []


INSTALLERS = "PIP_"
"""How the names of variables begin that are pip's alone: an index's address may have a password in it."""


def environment_on(link: HostLink, cluster: Cluster, installs: bool = False) -> dict[str, str]:
    """Variables of everything that is started on a host, and of what that starts. Only what `installs` has the
    installer's: all else may run a vendor's code, or start what does."""
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME") if cluster.interface else ()
    network = dict.fromkeys(names, cluster.interface or "")
    given = {name: value for name, value in cluster.environment.items() if installs or not name.startswith(INSTALLERS)}
    return {**handed_on({**network, **given}, passing()), "PYTHONPATH": link.code}
