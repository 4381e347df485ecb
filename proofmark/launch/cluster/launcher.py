"""One job over several hosts: code sent, hosts questioned, agents started, logs gathered, everything ended."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Sequence
from typing import Any

from proofmark.launch.cluster.connection import HostError
from proofmark.launch.cluster.controller import Controller
from proofmark.launch.cluster.link import HostLink, HostSetup, environment_on
from proofmark.launch.cluster.node import LAST_WORDS, Tell
from proofmark.launch.cluster.preflight import HostReport, demand, ready
from proofmark.launch.cluster.readying import free_port, make_ready
from proofmark.launch.cluster.silences import Silences
from proofmark.launch.job import Handle, HostLayout, Job
from proofmark.launch.job_file import JobFile, Status
from proofmark.process import wall_clock
from proofmark.process.child import cause_of_death
from proofmark.process.lifetime import MARK
from proofmark.rules.scale import Scale

PATIENCE = 20.0
"""Seconds that the other nodes get to end, and to say why, after one has failed."""

LONGEST = 1.0
"""Seconds between two looks that count: while this machine stood still nobody listened to what the nodes said."""

FETCHING = 3600.0
"""Seconds that what a job left may take to come home."""


class ClusterLauncher:
    """Hosts over ssh, under Slurm, or in containers."""

    def __init__(self, setup: HostSetup, controller: Controller) -> None:
        self._setup, self._controller = setup, controller

    def submit(self, job: Job) -> ClusterHandle:
        """Start a job in the controller's thread, and return at once."""
        for node in range(job.nnodes):
            job.node_directory(node)
        return ClusterHandle(self._setup, self._controller, job)

    def examine(self, count: int, tell: Tell, scales: Sequence[Scale] = ()) -> list[HostReport]:
        """Connect to `count` hosts, send what they lack, and ask whether they are what runs at some scales need.
        Nothing is started."""
        return self._controller.wait_for(_examine(self._setup, self._controller, count, tell, scales))


class ClusterHandle(Handle):
    """A job on other hosts. The controller's thread leads it; all others read the state that it keeps."""

    def __init__(self, setup: HostSetup, controller: Controller, job: Job) -> None:
        super().__init__(JobFile.begin(job.index, job.name, setup.launcher, job.directory))
        self._setup, self._controller, self._job = setup, controller, job
        self._stop = threading.Event()
        self._status: Status = "running"
        self._facts: dict[str, Any] = {"lost": []}
        self._run_name = secrets.token_hex(8)
        self._links: list[HostLink] = []
        self._silences = Silences(setup.cluster.silence_timeout, self._news.append)
        self._led = controller.lead(self._lead())

    def status(self) -> Status:
        """The status that the controller's thread has noted."""
        return self._status

    @property
    def silent(self) -> bool:  # type: ignore[override]
        """Whether any host is."""
        return bool(self._silences)

    def tell(self, line: str) -> None:
        """Write a line to each agent's standard input. A host that is lost meanwhile says so by its connection."""
        self._controller.lead(self._tell(line)).result()

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """Bring home what agents that have ended left; of the first host where that fails, why."""
        return self._controller.wait_for(self._fetch(leaves))

    def stop(self) -> None:
        """End everything, and wait until it has ended."""
        self._stop.set()
        with contextlib.suppress(TimeoutError):
            self._led.result(60)

    def facts(self) -> dict[str, Any]:
        """The name, clock, chip and versions of each host; and the nodes that were lost."""
        return self._facts

    async def _lead(self) -> None:
        status: Status = "failed"
        try:
            status = await self._run()
        except HostError as error:
            if str(error):
                self._lose(None, str(error))
        except Exception as error:  # noqa: BLE001 (it would be lost)
            self._lose(None, f"{type(error).__name__}: {error}")
        self._file = self._file.end(status)
        self._status = status

    def _lose(self, node: int | None, why: str) -> None:
        self._facts["lost"].append({"node": node, "reason": why})

    async def _run(self) -> Status:
        setup, links, status = self._setup, list[HostLink](), "failed"
        try:
            nodes = await self._unless_stopped(setup.nodes.take(self._job.nnodes, self._news.append))
            links = self._links = await self._controller.links(setup, nodes, self._job)
            await self._prepare(links)
            await self._start(links)
            status = await self._follow(links)
            await self._hold(status)
            return status
        finally:
            self._facts["hosts"] = [link.facts() for link in links]
            await asyncio.gather(*(self._leave(link, well=status == "succeeded") for link in links))
            await setup.nodes.give_back()

    def _heed_stop(self) -> bool:
        """Whether the session has stopped it, or somebody by its id, which is then noted."""
        if not self._stop.is_set() and self._file.is_asked_to_stop():
            self._lose(None, f"job {self._file.id} was stopped by its id")
            self._stop.set()
        return self._stop.is_set()

    async def _unless_stopped(self, work: Any) -> Any:
        """What `work` gives, unless this is stopped before."""
        task = asyncio.ensure_future(work)
        while not task.done():
            if self._heed_stop():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                raise HostError("it was stopped before it began")
            await asyncio.wait([task], timeout=0.2)
        return task.result()

    async def _prepare(self, links: Sequence[HostLink]) -> None:
        """Put everything in place on every host; of each where something is wrong, tell what it is."""
        await self._unless_stopped(make_ready(self._setup, links, self._news.append))
        wrong = [link.report for link in links if link.report.problems]
        for report in wrong:
            self._lose(report.node, f"{report.name}: {'; '.join(report.problems)}")
        if wrong:
            raise HostError("")  # who is not ready, and why, has been said
        self._facts["hosts"] = [link.facts() for link in links]
        self._file = self._file.note(hosts=tuple(link.name for link in links))
        self._news.append(f"{ready(len(links), len(links))}; {self._job.begins}")

    async def _start(self, links: Sequence[HostLink]) -> None:
        """Start an agent on every node at once."""
        master = None
        if self._job.nnodes > 1:
            port = self._setup.cluster.master_port or await free_port(links[0])
            master = (links[0].node.address, port)
        clearing = self._setup.cluster.clear_caches
        if clearing:
            await asyncio.gather(*(self._ask(link, "drop_caches") for link in links))
        self._facts |= {"started": wall_clock.now(), "caches_cleared": clearing}
        await asyncio.gather(*(self._run_on(link, master) for link in links))

    async def _run_on(self, link: HostLink, master: tuple[str, int] | None) -> None:
        cluster, node, mark = self._setup.cluster, link.report.node, secrets.token_hex(16)
        run = self._run_directory(link)
        layout = HostLayout(run, link.code, f"{link.work_dir}/cache", master, link.engine_container)
        await self._ask(
            link,
            "run",
            command=[link.python, "-m", self._job.module, f"{run}/spec.json", str(node)],
            environment={**environment_on(link, cluster), MARK: mark},
            directory=f"{run}/noderank{node}",
            leaves=list(self._job.leaves),
            spec=self._job.spec.moved(layout).text(),
            mark=mark,
        )

    async def _hold(self, status: Status) -> None:
        """Keep the hosts of a job whose agents have ended, until it is stopped."""
        self._status = status
        while self._job.held and not self._heed_stop():
            await asyncio.sleep(0.05)

    async def _tell(self, line: str) -> None:
        cluster = self._setup.cluster
        patience = cluster.answer_timeout + cluster.silence_timeout  # it may be given while a link is silent
        with contextlib.suppress(HostError):
            await asyncio.gather(*(link.connection.ask("say", timeout=patience, line=line) for link in self._links))

    async def _fetch(self, leaves: Sequence[str]) -> str | None:
        for link in self._links:
            logs = link.connection.logs
            logs.expect(leaves)
            try:
                answer = await link.connection.ask("fetch", timeout=FETCHING, leaves=list(leaves))
                unsent = answer["unsent"] and f"not sent, as links or for their names: {answer['unsent']}"
                wrong = logs.lacking(answer["sizes"]) or unsent
            except (HostError, LookupError, TypeError, AttributeError) as error:
                wrong = str(error)
            if wrong:
                return f"{link.name}: {wrong}"
        return None

    async def _ask(self, link: HostLink, order: str, **fields: Any) -> None:
        """Give an order; a host that refuses is named."""
        try:
            await link.connection.ask(order, **fields)
        except HostError as error:
            raise HostError(f"{link.node.name}: {error}") from None

    async def _follow(self, links: Sequence[HostLink]) -> Status:
        """Until all agents have ended; a node that failed or was lost takes the others with it.

        The first to fail is not always at fault: where a host dies, ranks on the others fail over it, and their agents
        may end before its silence shows. So the others get `PATIENCE` to end too and say why; where all have, or a node
        is lost, `LAST_WORDS` for what is still on its way. Only then is it said who was lost.
        """
        failed_at, late, now, looked = None, 0.0, 0.0, time.monotonic()
        while not self._heed_stop():
            step, looked = min(time.monotonic() - looked, LONGEST), time.monotonic()
            now += step
            ended = [link.connection.logs.ended for link in links]
            taken = await self._setup.nodes.gone()
            self._silences.look(links)
            late += step if 0 in ended and not self._silences else 0.0  # a silent one's end waits in its link
            if late > self._job.ending:
                self._give_up([link for link in links if link.connection.logs.ended is None])
            lost = [link for link in links if link.connection.lost and link.connection.logs.ended is None]
            lost += [link for link in links if link.connection.logs.incomplete and link.connection.logs.ended == 0]
            if all(code == 0 for code in ended) and not lost:
                return "succeeded"
            if taken or lost or any(ended):
                failed_at = now if failed_at is None else failed_at
                over = taken or lost or None not in ended
                if now - failed_at > (LAST_WORDS if over else PATIENCE):
                    self._name_the_lost(links, taken)
                    return "failed"
            await asyncio.sleep(0.1)
        return "failed"

    def _give_up(self, links: Sequence[HostLink]) -> None:
        for link in links:
            link.connection.give_up(f"its agent has not ended, {self._job.ending:.0f} s after another node's")

    def _name_the_lost(self, links: Sequence[HostLink], taken: str | None) -> None:
        """Nodes that brought the others down without a rank that could say so. One that is silent is not waited for any
        longer."""
        if taken:
            self._lose(None, taken)
        for link in () if taken else links:
            logs, why = link.connection.logs, None
            if logs.ended is None:
                why = link.connection.lost or link.connection.quiet
            elif logs.ended and logs.full:
                why = f"its disk is full, {link.work_dir}"
            elif logs.ended < 0:
                why = f"its agent {cause_of_death(logs.ended)}"
            elif logs.ended == 0:
                why = logs.incomplete
            if why:
                self._lose(link.report.node, f"{link.name}: {why}")

    async def _leave(self, link: HostLink, well: bool) -> None:
        """End a host's agent, wait for its last words, and leave no run behind there."""
        connection = link.connection
        try:
            if connection.is_open and "started" in self._facts:
                await connection.ask("stop", timeout=20)
                for _ in range(50):
                    if connection.logs.ended is not None or connection.lost:
                        break
                    await asyncio.sleep(0.1)
                await connection.ask("remove")
        except HostError:
            well = False
        await self._controller.release(self._setup, link, well)

    def _run_directory(self, link: HostLink) -> str:
        """The node's own directory of the run: hosts may share a disk."""
        return f"{link.work_dir}/runs/{self._run_name}-{link.report.node}"


async def _examine(
    setup: HostSetup, controller: Controller, count: int, tell: Tell, scales: Sequence[Scale]
) -> list[HostReport]:
    links, looked = list[HostLink](), False
    try:
        links = await controller.links(setup, await setup.nodes.take(count, tell), None)
        await make_ready(setup, links, tell)
        demand([link.report for link in links], scales, setup.described)
        looked = True
    finally:
        well = [looked and not link.report.problems for link in links]
        await asyncio.gather(*(controller.release(setup, *each) for each in zip(links, well, strict=True)))
        await setup.nodes.give_back()
    return [link.report for link in links]
