"""A host on its way to a job: reached, given the code, questioned, described."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cluster import describe, far_end
from harness.cluster.cluster_file import Cluster
from harness.cluster.code_tree import CodeTree
from harness.cluster.connection import Connection, HostError
from harness.cluster.container import Container
from harness.cluster.node import CONNECT_TIMEOUT, Node, Nodes
from harness.cluster.preflight import HostReport, Wishes, compare, question
from harness.launch import Job

PROGRAM = Path(far_end.__file__).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Described:
    """What `harness.cluster.describe` is asked: of whose devices, and how many there must be.

    Attributes:
        vendor: its name.
        precision: whose peak the chip's description has.
        device: as --device says; empty for nothing.
        devices: that a host must have.
        everywhere: on every host, and not on the first one alone: importing a vendor takes its time.
    """

    vendor: str
    precision: str
    device: str
    devices: int = 0
    everywhere: bool = False


@dataclass(frozen=True)
class Means:
    """How a job gets onto its hosts."""

    nodes: Nodes
    cluster: Cluster
    code: CodeTree
    packages: tuple[str, ...]
    described: Described
    data_dir: str | None = None
    container: Container | None = None

    async def far_end(self, node: Node) -> tuple[list[str], dict[str, Any]]:
        """What starts a far end on a node, and what a record should say of its container.

        Raises:
            HostError: the container's image is not to be had there.
        """
        program = [self.cluster.python, "-u", "-c", PROGRAM]
        if self.container is None:
            return node.command(program), {}
        lead, facts = await self.container.prepare(node, self.cluster, self.data_dir)
        return node.command([*lead, *program]), facts

    async def part_from(self, link: HostLink) -> None:
        """Let go of a host, and of a container that may have outlived the connection to it."""
        await link.connection.close()
        if self.container and link.container:
            await self.container.remove(link.node, link.container["name"])


@dataclass
class HostLink:
    """A node, its connection, and what is known of it."""

    node: Node
    connection: Connection
    report: HostReport
    work_dir: str = ""
    code: str = ""
    container: dict[str, Any] = field(default_factory=dict)
    """What a record should say of it; empty if there is none."""

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.node.name}, container {self.container['name']}" if self.container else self.node.name


def links_to(nodes: Sequence[Node], job: Job | None) -> list[HostLink]:
    """Nodes in their order; what they send home is kept in the job's directory."""
    return [
        HostLink(node, Connection(job.node_directory(number) if job else None), HostReport(number, node.name))
        for number, node in enumerate(nodes)
    ]


async def make_ready(means: Means, links: Sequence[HostLink]) -> None:
    """Connect, send code, ask: all hosts at once. What is wrong is in the reports."""
    cluster = means.cluster
    wishes = Wishes(means.packages, cluster.interface, cluster.master_port, means.data_dir)
    await asyncio.gather(*(_make_one_ready(means, link, wishes) for link in links))
    compare([link.report for link in links])


async def _make_one_ready(means: Means, link: HostLink, wishes: Wishes) -> None:
    connection, report = link.connection, link.report
    try:
        command, link.container = await means.far_end(link.node)
        await connection.open(command, CONNECT_TIMEOUT + 10)
        link.work_dir = (await connection.ask("open", work_dir=means.cluster.work_dir))["work_dir"]
        await _send_code(means.code, link)
    except HostError as error:
        report.problems.append(str(error))
        return
    await question(connection, report, wishes)
    if not report.problems and (means.described.everywhere or report.node == 0):
        await _describe(means, link)


async def _send_code(code: CodeTree, link: HostLink) -> None:
    """Only what the host has not got."""
    connection = link.connection
    lacking = (await connection.ask("lack", code.manifest, tree=code.sha256))["lacking"]
    for sha in lacking:
        await connection.ask("take", code.content(sha), sha=sha)
    laid = await connection.ask("lay_out")
    if laid["edited"]:
        names = ", ".join(laid["edited"][:5])
        more = f" and {len(laid['edited']) - 5} more" if len(laid["edited"]) > 5 else ""
        link.report.problems.append(f"edited on the host: {names}{more}; remove {laid['code']} to have it sent anew")
    link.code = laid["code"]


async def _describe(means: Means, link: HostLink) -> None:
    """The vendor's words on the host's chip and devices."""
    asked, report = means.described, link.report
    arguments = [asked.vendor, f"{link.code}/vendors", asked.precision, asked.device]
    command = [means.cluster.python, "-m", "harness.cluster.describe", *arguments]
    environment = environment_of(link, means.cluster)
    try:
        ran = await link.connection.ask("ask", command=command, environment=environment, seconds=55.0)
        report.facts |= describe.facts(ran["output"]) if ran["code"] == 0 else {}
    except (HostError, ValueError, LookupError) as error:
        report.problems.append(f"its devices cannot be described: {error}")
        return
    if ran["code"] != 0:
        told = ran["errors"].strip().splitlines()[-1:] or [f"exit code {ran['code']}"]
        report.problems.append(f"its devices cannot be described: {told[0]}")
    elif report.facts["devices"] < asked.devices:
        report.problems.append(f"{asked.devices} devices are needed, it has {report.facts['devices']}")
    report.problems += report.facts.get("busy", [])


def environment_of(link: HostLink, cluster: Cluster) -> dict[str, str]:
    """Variables of everything that is started on a host."""
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME") if cluster.interface else ()
    network = dict.fromkeys(names, cluster.interface or "")
    return {**network, **cluster.environment, "PYTHONPATH": link.code}


def host_facts(link: HostLink) -> dict[str, Any]:
    """What a run's record says of a host."""
    report, kept = link.report, ("hostname", "python", "versions", "chip", "host", "devices")
    facts = {key: report.facts[key] for key in kept if key in report.facts}
    facts |= {"container": link.container} if link.container else {}
    return {"node": report.node, "name": report.name, "skew": report.skew, "round_trip": report.round_trip, **facts}
