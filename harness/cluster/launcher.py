"""One job over several hosts: code sent, hosts questioned, agents started, logs gathered, everything ended."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cluster import describe, far_end
from harness.cluster.cluster_file import Cluster
from harness.cluster.code_tree import CodeTree
from harness.cluster.connection import Connection, HostError
from harness.cluster.container import Container
from harness.cluster.controller import lead
from harness.cluster.node import CONNECT_TIMEOUT, Node, Nodes
from harness.cluster.preflight import HostReport, Wishes, compare, question, table
from harness.launch import Job, Place, Status
from harness.process import MARK
from harness.training.scale import Scale

PATIENCE = 10.0
"""Seconds that the other nodes get to end, and to say why, after one has failed."""

AT_ONCE = 32
"""Hosts that are made ready at once: each needs a process here, and the key exchanges of all of them make each late."""
LAST_WORDS = 2.0
"""Seconds in which a node that was lost, or whoever gave the nodes, says why all has ended."""

PROGRAM = Path(far_end.__file__).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Described:
    """What `harness.cluster.describe` is asked: of whose devices, and how many there must be.

    Attributes:
        vendor: its name.
        precision: whose peak the chip's description has.
        device: as --device says; empty for nothing.
        scale: that a host must have the chip for, and the devices, if `devices` are the vendor's own.
        devices: whether there are any but the processor: then every host is asked, and not the first one alone.
    """

    vendor: str
    precision: str
    device: str
    scale: Scale | None
    devices: bool

    def problems(self, facts: dict[str, Any]) -> list[str]:
        """What of a host's description does not do for the scale."""
        found, wanted = list(facts["busy"]), self.scale
        if wanted and not wanted.is_for(facts["chip"]["name"]):
            found.append(f"scale {wanted} is for another chip than its {facts['chip']['name']}")
        if wanted and self.devices and facts["devices"] < wanted.nproc:
            found.append(f"scale {wanted} needs {wanted.nproc} devices, it has {facts['devices']}")
        return found


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


class ClusterLauncher:
    """Hosts over ssh, under Slurm, or in containers."""

    def __init__(self, means: Means) -> None:
        self._means = means

    def submit(self, job: Job) -> ClusterHandle:
        """Begin, in a thread of its own, and return at once."""
        for node in range(job.nnodes):
            job.node_directory(node)
        return ClusterHandle(self._means, job)

    def examine(self, count: int) -> list[HostReport]:
        """Connect to `count` hosts, send what they lack, and ask what they are. Nothing is started."""
        return lead(count, lambda: _examine(self._means, count))


class ClusterHandle:
    """A job on other hosts. A thread leads it; everybody else looks at what that one says."""

    def __init__(self, means: Means, job: Job) -> None:
        self._means, self._job = means, job
        self._news: list[str] = []
        self._stop = threading.Event()
        self._status: Status = "running"
        self._facts: dict[str, Any] = {"lost": []}
        self._thread = threading.Thread(target=self._lead, daemon=True)
        self._thread.start()

    def status(self) -> Status:
        """As the thread has it."""
        return self._status

    def news(self) -> list[str]:
        """What was noted since the last call."""
        told = self._news[:]
        del self._news[: len(told)]  # the thread may add to it meanwhile
        return told

    def stop(self) -> None:
        """Ask the thread to end everything, and wait until it has."""
        self._stop.set()
        self._thread.join(60)

    def facts(self) -> dict[str, Any]:
        """Of each host its name, clock, chip and versions; and the nodes that were lost."""
        return self._facts

    def _lead(self) -> None:
        status: Status = "failed"
        try:
            status = lead(self._job.nnodes, self._run)
        except HostError as error:
            self._lose(None, str(error))
        except Exception as error:  # noqa: BLE001 (a thread's exception would be lost)
            self._lose(None, f"{type(error).__name__}: {error}")
        self._status = status

    def _lose(self, node: int | None, why: str) -> None:
        self._facts["lost"].append({"node": node, "reason": why})

    async def _run(self) -> Status:
        means, links = self._means, list[HostLink]()
        try:
            nodes = await self._unless_stopped(means.nodes.take(self._job.nnodes, self._news.append))
            links = _links(nodes, self._job)
            await self._prepare(links)
            await self._start(links)
            return await self._follow(links)
        finally:
            self._facts["hosts"] = [_host_facts(link) for link in links]
            await asyncio.gather(*(self._leave(link) for link in links))
            await means.nodes.give_back()

    async def _unless_stopped(self, work: Any) -> Any:
        """What `work` gives, unless this is stopped before."""
        task = asyncio.ensure_future(work)
        while not task.done():
            if self._stop.is_set():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                raise HostError("it was stopped before it began")
            await asyncio.wait([task], timeout=0.2)
        return task.result()

    async def _prepare(self, links: Sequence[HostLink]) -> None:
        """Everything in place on every host, or a table of what is not."""
        await self._unless_stopped(_make_ready(self._means, links))
        wrong = [link.report for link in links if link.report.problems]
        for report in wrong:
            self._lose(report.node, f"{report.name}: {'; '.join(report.problems)}")
        if wrong:
            raise HostError(f"{len(wrong)} of {len(links)} hosts are not ready:\n{table(wrong)}")

    async def _start(self, links: Sequence[HostLink]) -> None:
        """An agent on every node at once."""
        master = None
        if self._job.nnodes > 1:
            port = self._means.cluster.master_port or (await links[0].connection.ask("free_port"))["port"]
            master = (links[0].node.address, port)
        self._run_name = secrets.token_hex(8)
        self._facts |= {"started": time.time(), "caches_cleared": self._means.cluster.clear_caches}
        await asyncio.gather(*(self._run_on(link, master) for link in links))

    async def _run_on(self, link: HostLink, master: tuple[str, int] | None) -> None:
        cluster, node, mark = self._means.cluster, link.report.node, secrets.token_hex(16)
        run = self._run_directory(link)
        place = Place(run, link.code, f"{link.work_dir}/cache", master)
        if cluster.clear_caches:
            await self._ask(link, "drop_caches")
        await self._ask(
            link,
            "run",
            command=[cluster.python, "-m", self._job.module, f"{run}/spec.json", str(node)],
            environment={**_environment(link, cluster), MARK: mark},
            directory=f"{run}/noderank{node}",
            spec=self._job.spec.moved(place).text(),
            mark=mark,
        )

    async def _ask(self, link: HostLink, order: str, **fields: Any) -> None:
        """Give an order; a host that refuses is named."""
        try:
            await link.connection.ask(order, **fields)
        except HostError as error:
            raise HostError(f"{link.node.name}: {error}") from None

    async def _follow(self, links: Sequence[HostLink]) -> Status:
        """Until all agents have ended; a node that failed or was lost takes the others with it."""
        failed_at: float | None = None
        while not self._stop.is_set():
            ended = [link.connection.ended for link in links]
            taken = await self._means.nodes.gone()
            lost = [link for link in links if link.connection.lost and link.connection.ended is None]
            if all(code == 0 for code in ended):
                return "succeeded"
            if taken or lost or any(ended):
                failed_at = failed_at or time.monotonic()
                over = taken or lost or None not in ended
                if time.monotonic() - failed_at > (LAST_WORDS if over else PATIENCE):
                    for link in () if taken else lost:
                        self._lose(link.report.node, f"{link.name}: {link.connection.lost}")
                    if taken:
                        self._lose(None, taken)
                    return "failed"
            await asyncio.sleep(0.1)
        return "failed"

    async def _leave(self, link: HostLink) -> None:
        """End a host's agent, wait for its last words, and leave no run behind there."""
        connection = link.connection
        with contextlib.suppress(HostError):
            if connection.lost is None and link.code and hasattr(self, "_run_name"):
                await connection.ask("stop", timeout=20)
                for _ in range(50):
                    if connection.ended is not None or connection.lost:
                        break
                    await asyncio.sleep(0.1)
                await connection.ask("remove", directory=self._run_directory(link))
        await self._means.part_from(link)

    def _run_directory(self, link: HostLink) -> str:
        """A node's own: hosts may share a disk."""
        return f"{link.work_dir}/runs/{self._run_name}-{link.report.node}"


def _links(nodes: Sequence[Node], job: Job | None) -> list[HostLink]:
    return [
        HostLink(node, Connection(job.node_directory(number) if job else None), HostReport(number, node.name))
        for number, node in enumerate(nodes)
    ]


async def _examine(means: Means, count: int) -> list[HostReport]:
    links = _links(await means.nodes.take(count, lambda _: None), None)
    try:
        await _make_ready(means, links)
    finally:
        await asyncio.gather(*(means.part_from(link) for link in links))
        await means.nodes.give_back()
    return [link.report for link in links]


async def _make_ready(means: Means, links: Sequence[HostLink]) -> None:
    """Connect, send code, ask: many hosts at once. What is wrong is in the reports."""
    cluster = means.cluster
    wishes = Wishes(means.packages, cluster.interface, cluster.master_port, means.data_dir)
    slots = asyncio.Semaphore(AT_ONCE)

    async def in_its_turn(link: HostLink) -> None:
        async with slots:
            await _make_one_ready(means, link, wishes)

    await asyncio.gather(*map(in_its_turn, links))
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
    if not report.problems and (means.described.devices or report.node == 0):
        await _describe(means, link)


async def _send_code(code: CodeTree, link: HostLink) -> None:
    """Only what the host has not got."""
    connection = link.connection
    lacking = (await connection.ask("lack", code.manifest, tree=code.sha256))["lacking"]
    if lacking:
        files = {sha: code.contents[sha] for sha in lacking}
        sizes = {sha: len(content) for sha, content in files.items()}
        await connection.ask("take", b"".join(files.values()), sizes=sizes)
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
    environment = _environment(link, means.cluster)
    try:
        ran = await link.connection.ask("ask", command=command, environment=environment, seconds=55.0)
        report.facts |= describe.facts(ran["output"]) if ran["code"] == 0 else {}
    except (HostError, ValueError, LookupError) as error:
        report.problems.append(f"its devices cannot be described: {error}")
        return
    if ran["code"] != 0:
        told = ran["errors"].strip().splitlines()[-1:] or [f"exit code {ran['code']}"]
        report.problems.append(f"its devices cannot be described: {told[0]}")
    else:
        report.problems += asked.problems(report.facts)


def _environment(link: HostLink, cluster: Cluster) -> dict[str, str]:
    """Variables of everything that is started on a host."""
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME") if cluster.interface else ()
    network = dict.fromkeys(names, cluster.interface or "")
    return {**network, **cluster.environment, "PYTHONPATH": link.code}


def _host_facts(link: HostLink) -> dict[str, Any]:
    """For the run's record."""
    report, kept = link.report, ("hostname", "python", "versions", "chip", "host", "devices")
    facts = {key: report.facts[key] for key in kept if key in report.facts}
    facts |= {"container": link.container} if link.container else {}
    return {"node": report.node, "name": report.name, "skew": report.skew, "round_trip": report.round_trip, **facts}
