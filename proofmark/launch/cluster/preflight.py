"""Before anything starts: is every host what it should be? All that is wrong with any of them, at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proofmark.launch.cluster.connection import Connection, HostError
from proofmark.launch.hosts.request import DescribeRequest
from proofmark.plain_json import first_of
from proofmark.process.wall_clock import now
from proofmark.rules.scale import Scale

MOST_SKEW = 0.5
"""Seconds that a host's clock may differ from this one's."""

LEAST_FREE = 1 << 30
"""Bytes that a run's logs may need."""

PINGS = 4


class Facts(BaseModel):
    """What a host answers; whatever else it says is left out."""

    model_config = ConfigDict(strict=True)

    hostname: str
    python: str
    versions: dict[str, str | None]
    free_bytes: Annotated[int, Field(ge=0)]
    interface: str | None
    port_free: bool | None
    data: dict[str, str | None]
    shared: bool | None
    clears_caches: bool | None


@dataclass(frozen=True)
class HostRequirements:
    """What a run needs of its hosts."""

    packages: tuple[str, ...]
    interface: str | None = None
    port: int | None = None
    data_dirs: tuple[str, ...] = ()
    shared: str | None = None
    """A file that was written here, into a directory that all hosts are said to share."""
    clear_caches: bool = False


@dataclass
class HostReport:
    """What one host said of itself, and what is wrong with it.

    Seconds: `skew` is how far its clock is ahead of the session's, known to half of `round_trip`; `ahead` is how far it
    is ahead of what this machine's clock shows, which may have been set since the session read it.
    """

    node: int
    name: str
    facts: dict[str, Any] = field(default_factory=dict)
    skew: float | None = None
    ahead: float | None = None
    round_trip: float | None = None
    problems: list[str] = field(default_factory=list)


async def question(connection: Connection, report: HostReport, required: HostRequirements) -> None:
    """Ask a host whose code is in place, and note what is wrong with it alone.

    Raises:
        LookupError, TypeError, ValueError: its answer is none.
    """
    try:
        await _ask_time(connection, report)
        answer = await connection.ask("facts", **vars(required) | {"port": required.port if not report.node else None})
        report.facts = Facts.model_validate(answer).model_dump()
    except HostError as error:
        report.problems.append(str(error))
        return
    except ValidationError as error:
        raise ValueError(first_of(error)) from None
    lacking = [package for package, version in report.facts["versions"].items() if version is None]
    if lacking:
        report.problems.append(f"not installed: {', '.join(lacking)}; `requirements` in the cluster file has them so")
    if report.ahead is not None and not abs(report.ahead) <= MOST_SKEW:
        ahead = "ahead of" if report.ahead > 0 else "behind"
        report.problems.append(f"its clock is {abs(report.ahead):.1f} s {ahead} this machine's: set it by NTP")
    if report.facts["free_bytes"] < LEAST_FREE:
        report.problems.append(f"{report.facts['free_bytes'] / 2**20:.0f} MiB are free in work_dir; 1 GiB is needed")
    if report.facts["interface"] not in (None, "up", "loopback"):
        report.problems.append(f"interface {required.interface} is {report.facts['interface']}")
    if report.facts["port_free"] is False:
        report.problems.append(f"port {required.port} (master_port) is taken")
    if report.facts["shared"] is False:
        report.problems.append(f"{required.shared} (`checkpoints`) was written here and is not there: not shared")
    if report.facts["clears_caches"] is False:
        report.problems.append("`clear_caches`: the user may not write /proc/sys/vm/drop_caches there")
    absent = [each for each in required.data_dirs if report.facts["data"].get(each) is None]
    report.problems += [f"there is no directory {each}" for each in absent]


async def _ask_time(connection: Connection, report: HostReport) -> None:
    """The offset of the exchange that took least time."""
    for _ in range(PINGS):
        sent = now()
        there = (await connection.ask("time"))["time"]
        back = now()
        if report.round_trip is None or back - sent < report.round_trip:
            report.round_trip, report.skew = back - sent, there - (sent + back) / 2
            report.ahead = report.skew - (time.time() - back)


def compare(reports: Sequence[HostReport]) -> None:
    """Note where a host differs from the first one that answered."""
    answered = [report for report in reports if report.facts]
    for other in answered[1:]:
        first, facts = answered[0], other.facts
        if facts["python"] != first.facts["python"]:
            other.problems.append(f"Python is {facts['python']}, on {first.name} it is {first.facts['python']}")
        for package, version in facts["versions"].items():
            expected = first.facts["versions"].get(package)
            if None not in (version, expected) and version != expected:
                other.problems.append(f"{package} is {version}, on {first.name} it is {expected}")
        for directory, files in facts["data"].items():
            expected = first.facts["data"].get(directory)
            if None not in (files, expected) and files != expected:
                other.problems.append(f"the files of {directory} are not those of {first.name}")
        if "chip" in facts and "chip" in first.facts and facts["chip"] != first.facts["chip"]:
            chips = [each["chip"]["name"] for each in (facts, first.facts)]
            other.problems.append(f"its chip is {chips[0]}, on {first.name} it is {chips[1]}")


def demand(reports: Sequence[HostReport], scales: Sequence[Scale], described: DescribeRequest) -> None:
    """Note what hosts lack for a session's scales. A vendor may offer some for other chips: those count where none is
    for the host's own."""
    for report in reports:
        theirs = [scale for scale in scales if scale.nnodes > report.node]
        if theirs and "chip" in report.facts:
            fitting = [scale for scale in theirs if scale.is_for(report.facts["chip"]["name"])]
            report.problems += described.lacking(max(fitting or theirs, key=attrgetter("nproc")), report.facts)


def ready(ready: int, of: int) -> str:
    """How many of how many hosts are ready, as a sentence begins."""
    if ready == of:
        return "the host is ready" if of == 1 else f"all {of} hosts are ready"
    if of == 1:
        return "the host is not ready"
    return f"of {of} hosts {of - ready} {'is' if of - ready == 1 else 'are'} not ready"


def signed(seconds: float | None) -> str:
    """Seconds with their sign and three decimals; without a sign where they round to 0."""
    return f"{round(seconds or 0.0, 3) + 0.0:+.3f}"


def table(reports: Sequence[HostReport]) -> str:
    """All hosts in order, each with its problems or with its facts."""
    rows = []
    for report in reports:
        facts = report.facts
        good = f"Python {facts['python']}, clock {signed(report.ahead)} s" if facts else ""
        rows += [
            (str(report.node), report.name, " ".join(state.split())) for state in report.problems or [f"ok: {good}"]
        ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    return "\n".join(f"{node:>{widths[0]}}  {name:<{widths[1]}}  {state}" for node, name, state in rows)
