"""Hosts on their way to a job: reached, given the code, questioned, described, many at once."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.cluster.connection import Connection, HostError
from proofmark.launch.cluster.container.keeper import Keeper
from proofmark.launch.cluster.link import CONSTRAINTS, HostLink, HostSetup, environment_on
from proofmark.launch.cluster.node import LAST_WORDS, Nodes, Tell, may_try_again
from proofmark.launch.cluster.preflight import HostRequirements, compare, question
from proofmark.launch.cluster.program import OLDEST
from proofmark.launch.hosts import describe
from proofmark.literal import some
from proofmark.process.lifetime import MARK

AT_ONCE = 32
"""Hosts that are made ready at once: each needs a process here, and the key exchanges of all of them make each late."""

INSTALL_TIMEOUT = 3600.0
"""Seconds that requirements may take to be installed."""


async def make_ready(setup: HostSetup, links: Sequence[HostLink], tell: Tell) -> None:
    """Connect, send code, install, ask: many hosts at once. What is wrong is in the reports.

    Raises:
        HostError: they were taken away meanwhile; or there is no `checkpoints` here.
    """
    cluster = setup.cluster
    slots = asyncio.Semaphore(AT_ONCE)

    async def in_its_turn(link: HostLink) -> None:
        async with slots:
            await _make_one_ready(setup, link, required, tell)

    with _written_to(cluster.checkpoints) as shared:
        required = HostRequirements(
            setup.packages, cluster.interface, cluster.master_port, setup.data_dirs, shared, cluster.clear_caches
        )
        await asyncio.gather(*map(in_its_turn, links))
    compare([link.report for link in links])
    if len({link.node.address for link in links}) > 1:
        for link in links:
            if link.report.facts.get("interface") == "loopback":
                link.report.problems.append("`interface` is the loopback one: no other host can be reached by it")
    if len(links) > 1 and not any(link.report.problems for link in links):
        await _meet(links, cluster.master_port)
    if any(link.report.problems for link in links):
        await _are_there(setup.nodes)


async def _are_there(nodes: Nodes) -> None:
    """Of hosts that are taken away each has a fault, and none is at fault."""
    if not nodes.stay:
        await asyncio.sleep(LAST_WORDS)
    if taken := await nodes.gone():
        raise HostError(taken)


@contextlib.contextmanager
def _written_to(folder: str | None) -> Iterator[str | None]:
    """Keep a file in a directory while hosts look whether they see it too.

    Raises:
        HostError: it can't be written there.
    """
    if folder is None:
        yield None
        return
    file = Path(folder) / f".shared-{secrets.token_hex(8)}"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    except OSError as error:
        raise HostError(f"`checkpoints`: {folder} cannot be written here: {error.strerror}") from None
    try:
        yield str(file)
    finally:
        file.unlink(missing_ok=True)


async def _meet(links: Sequence[HostLink], port: int | None) -> None:
    """Have every host call the first one, as ranks will: a firewall may be between them."""
    first, *others = links
    try:
        port = await _listen(first.connection, port)
    except HostError as error:
        first.report.problems.append(str(error))
        return

    async def call(link: HostLink) -> None:
        try:
            await link.connection.ask("reach", address=first.node.address, port=port)
        except HostError as error:
            link.report.problems.append(f"cannot reach {first.node.address}, port {port}: {error}")

    await asyncio.gather(*map(call, others))
    with contextlib.suppress(HostError):
        await first.connection.ask("hang_up")


async def free_port(link: HostLink) -> int:
    """A port of a host that nobody listens at."""
    try:
        port = await _listen(link.connection, None)
        await link.connection.ask("hang_up")
    except HostError as error:
        raise HostError(f"{link.name}: {error}") from None
    return port


async def _listen(connection: Connection, port: int | None) -> int:
    """The port that a host takes callers at, which may be left to it."""
    found = (await connection.ask("listen", port=port)).get("port")
    if type(found) is not int or not 0 < found < 1 << 16:
        raise HostError("it sent an invalid answer: no port at which it listens")
    return found


async def _make_one_ready(setup: HostSetup, link: HostLink, required: HostRequirements, tell: Tell) -> None:
    report = link.report
    try:
        await _reach(setup, link)
        if setup.cluster.requirements and not report.problems:
            python = await _installed(setup, link, tell)
            if python != link.python:
                await setup.part_from(link)
                link.python, link.connection = python, setup.connection(link.connection.logs)
                await _reach(setup, link)
        await question(link.connection, report, required)
        if not report.problems and (setup.described.devices or report.node == 0):
            await _describe(setup, link)
        if setup.container and setup.engines_alone and not (report.problems or link.engine_container):
            ready = await setup.container.for_engines(link.node, setup.cluster)
            link.engine_container, link.container = ready
    except HostError as error:
        report.problems.append(str(error))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        report.problems.append(f"it sent an invalid answer: {type(error).__name__}: {error}")
        report.facts = {}
    except OSError as error:
        report.problems.append(f"this machine: {error}")


async def _reach(setup: HostSetup, link: HostLink) -> None:
    """Start a far end on a host, and send the code. One that waited may have been lost unnoticed: it is replaced."""
    if link.connection.is_open:
        try:
            await _furnish(setup, link)
            return
        except HostError:
            if link.connection.lost is None:
                raise
        await setup.part_from(link)
        link.connection = setup.connection(link.connection.logs)
    command, link.container = await setup.far_end(link.node, link.python)
    link.engine_container = None
    if link.container:
        link.keeper = await Keeper.start(link.node, link.container["engine"], link.container["name"])
    try:
        await _open(setup, link, command)
    except HostError as error:
        if link.python not in str(error):
            raise
        oldest = ".".join(map(str, OLDEST))
        raise HostError(f"`python`: {error}; expected the name or path there of Python {oldest} or newer") from None
    await _furnish(setup, link)


async def _open(setup: HostSetup, link: HostLink, command: list[str]) -> None:
    for tried in count(1):
        try:
            await link.connection.open(command, setup.cluster.answer_timeout)
            return
        except HostError as error:
            if not await may_try_again(str(error), tried):
                raise
        link.connection = setup.connection(link.connection.logs)


async def _furnish(setup: HostSetup, link: HostLink) -> None:
    """Make the work directory, and put the code in it."""
    try:
        link.work_dir = (await link.connection.ask("open", work_dir=setup.cluster.work_dir))["work_dir"]
    except HostError as error:
        raise HostError(f"`work_dir`: {error}" if link.connection.lost is None else str(error)) from None
    await _send_code(setup.code, link)


async def _installed(setup: HostSetup, link: HostLink, tell: Tell) -> str:
    """The interpreter of an environment with all that is required; that may have to be made first."""
    files = [f"{link.code}/{file}" for file in setup.cluster.requirements]
    arguments = [f"{link.work_dir}/environments", f"{link.code}/{CONSTRAINTS}", *files]
    command = [setup.cluster.python, "-m", "proofmark.launch.hosts.install", *arguments]
    begun = time.monotonic()
    asked = asyncio.ensure_future(_command_on(setup, link, command, installs=True))
    try:
        done, _ = await asyncio.wait([asked], timeout=2)
        if not done:
            tell(f"{link.name}: installing {', '.join(setup.cluster.requirements)}")
        ran = await asked
    except HostError as error:
        raise HostError(f"its requirements cannot be installed: {error}") from None
    finally:
        asked.cancel()
    if not done:
        tell(f"{link.name}: {'installed' if ran['code'] == 0 else 'not installed'}, {time.monotonic() - begun:.0f} s")
    if ran["code"] != 0:
        lines = ran["errors"].strip().splitlines()
        why = [line for line in lines if line.startswith("ERROR")] or lines[-1:] or [f"exit code {ran['code']}"]
        raise HostError(f"its requirements cannot be installed: {'; '.join(why)[-600:]}")
    (python,) = ran["output"].strip().splitlines()[-1:] or [""]
    if not python.startswith(f"{link.work_dir}/environments/"):
        raise HostError(f"its requirements were installed, but {setup.cluster.python} does not say where")
    return str(python)


async def _command_on(setup: HostSetup, link: HostLink, command: list[str], installs: bool = False) -> dict[str, Any]:
    """The output of a short-lived command on a host.

    Raises:
        HostError: it takes too long, or the host is lost.
    """
    environment = environment_on(link, setup.cluster, installs)
    seconds, mark = INSTALL_TIMEOUT if installs else setup.cluster.answer_timeout, secrets.token_hex(16)
    ran = await link.connection.ask(
        "ask",
        timeout=seconds + 15,
        command=command,
        environment={**environment, MARK: mark},
        seconds=seconds,
        mark=mark,
    )
    if ran["code"] is None:
        key = "" if installs else ", `answer_timeout`"
        raise HostError(f"no answer within {seconds:g} s{key}")
    return ran


async def _send_code(code: CodeTree, link: HostLink) -> None:
    """Send only those files that the host lacks."""
    connection = link.connection
    lacking = (await connection.ask("lack", code.manifest, tree=code.sha256))["lacking"]
    for sizes, body, more in code.portions(dict.fromkeys(lacking)):
        await connection.ask("take", body, sizes=sizes, more=more)
    laid = await connection.ask("lay_out")
    if laid["edited"]:
        names = some(laid["edited"], 5)
        link.report.problems.append(f"edited on the host: {names}; remove {laid['code']} to have it sent again")
    link.code = laid["code"]


async def _describe(setup: HostSetup, link: HostLink) -> None:
    """The vendor's words on the host's chip and devices."""
    asked, report = setup.described, link.report
    try:
        ran = await _command_on(setup, link, asked.command(link.python, link.code))
        report.facts |= describe.facts(ran["output"]) if ran["code"] == 0 else {}
    except (HostError, ValueError, LookupError) as error:
        report.problems.append(f"its devices cannot be described: {error}")
        return
    if ran["code"] != 0:
        last_line = ran["errors"].strip().splitlines()[-1:] or [f"exit code {ran['code']}"]
        report.problems.append(f"its devices cannot be described: {last_line[0]}")
    else:
        report.problems += asked.problems(report.facts)
