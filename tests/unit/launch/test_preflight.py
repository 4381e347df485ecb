"""What a look at all hosts finds: every difference and every lack, with the real far end where it can be here."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.launch.cluster import preflight, readying
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.cluster.connection import Connection, HostError
from proofmark.launch.cluster.controller import Controller
from proofmark.launch.cluster.link import HostSetup
from proofmark.launch.cluster.node import Here, Node
from proofmark.launch.cluster.node_logs import NodeLogs
from proofmark.launch.cluster.preflight import HostReport, HostRequirements, compare, demand, question, table
from proofmark.launch.cluster.program import OLDEST, PROGRAM
from proofmark.launch.cluster.program import far_end as started_with
from proofmark.launch.cluster.readying import _describe, _meet, free_port, make_ready
from proofmark.launch.hosts.describe import facts
from proofmark.launch.hosts.request import DescribeRequest
from proofmark.launch.service.ticket import Ticket, read_wire
from proofmark.rules.scale import Scale
from proofmark.training.job import LEAVES
from tests.host_facts import FACTS
from tests.services import program
from tests.waiting import PATIENCE, until


def reports(**changed: Any) -> list[HostReport]:
    """Two hosts, the second with other facts."""
    return [HostReport(0, "first", dict(FACTS)), HostReport(1, "second", FACTS | changed)]


@pytest.mark.parametrize(
    "changed, expected",
    [
        ({"python": "3.12.1"}, "Python is 3.12.1, on first it is 3.11.9"),
        ({"versions": FACTS["versions"] | {"torch": "2.12.0"}}, "torch is 2.12.0, on first it is 2.13.0"),
        ({"data": {"/data": "bb"}}, "the files of /data are not those of first"),
    ],
)
def test_hosts_that_differ(changed: dict[str, Any], expected: str) -> None:
    both = reports(**changed)
    compare(both)
    assert (both[0].problems, both[1].problems) == ([], [expected])
    assert expected in table(both) and "ok" in table(both)


def test_hosts_that_are_alike() -> None:
    both = reports()
    compare(both)
    assert not any(report.problems for report in both)


def test_chips_that_differ() -> None:
    both = reports(chip={"name": "Y"})
    both[0].facts["chip"] = {"name": "X"}
    compare(both)
    assert both[1].problems == ["its chip is Y, on first it is X"]


def test_a_first_host_that_could_not_be_described_is_no_traceback() -> None:
    both = reports(chip={"name": "Y"})
    both[0].problems.append("its clock is behind")
    compare(both)
    assert not both[1].problems and "its clock is behind" in table(both)


NOW = 1e9


class Answers:
    """A host that says what a test wants."""

    def __init__(self, ahead: float = 0.0, **changed: Any) -> None:
        self.ahead, self.changed = ahead, changed

    async def ask(self, order: str, **_: Any) -> dict[str, Any]:
        """An answer."""
        return {"time": NOW + self.ahead} if order == "time" else FACTS | self.changed


@pytest.mark.parametrize(
    "host, expected",
    [
        (Answers(ahead=3.0), "its clock is 3.0 s ahead of this machine's"),
        (Answers(ahead=-60.0), "its clock is 60.0 s behind this machine's"),
        (Answers(versions={"torch": None}), "not installed: torch"),
        (Answers(free_bytes=5 << 20), "5 MiB are free in work_dir"),
        (Answers(interface="down"), "interface eth1 is down"),
        (Answers(port_free=False), "port 29500 (master_port) is taken"),
        (Answers(clears_caches=False), "`clear_caches`: the user may not write /proc/sys/vm/drop_caches"),
        (Answers(data={"/data": None}), "there is no directory /data"),
        (Answers(data={"/other": "aa"}), "there is no directory /data"),
    ],
)
def test_a_host_that_is_not_ready(host: Any, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = asked(host, monkeypatch).problems
    assert expected in found


def asked(host: Any, monkeypatch: pytest.MonkeyPatch, clock_set: float = 0.0) -> HostReport:
    """What is known of a host, whose answers take no time, since whoever asks had its clock set."""
    monkeypatch.setattr(preflight, "now", lambda: NOW)
    monkeypatch.setattr(preflight.time, "time", lambda: NOW + clock_set)
    report = HostReport(0, "first")
    asyncio.run(question(host, report, HostRequirements(("torch",), "eth1", 29500, ("/data",))))
    return report


def test_no_host_is_blamed_for_this_machines_clock_that_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop that slept goes on where it stopped; the host's events are laid over those of the session all the
    same."""
    report = asked(Answers(ahead=30.0), monkeypatch, clock_set=30.0)
    assert not report.problems and report.skew == 30.0 and table([report]).endswith("clock +0.000 s")
    assert asked(Answers(), monkeypatch, clock_set=30.0).problems == [
        "its clock is 30.0 s behind this machine's: set it by NTP"
    ]


def test_what_no_host_was_asked_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else looks at what it says of a chip before hosts are compared."""
    both = [asked(Answers(chip={"name": "Y"}), monkeypatch), asked(Answers(chip=5), monkeypatch)]
    compare(both)
    assert [report.facts for report in both] == [FACTS, FACTS] and not any(report.problems for report in both)


@pytest.mark.parametrize("changed", [{"versions": 5}, {"versions": {"torch": 2}}, {"data": []}, {"free_bytes": "all"}])
def test_facts_of_another_type_are_an_invalid_answer(changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=rf"^{next(iter(changed))}.*: Input should be"):
        asked(Answers(**changed), monkeypatch)


@pytest.mark.parametrize("answer", [{}, {"port": "x"}, {"port": True}, {"port": 1 << 16}], ids=str)
def test_the_first_host_says_where_it_listens(answer: dict[str, Any]) -> None:
    class Listens:
        async def ask(self, order: str, **_: Any) -> dict[str, Any]:
            return answer

    node = Node("first", "first")
    links: Any = [SimpleNamespace(connection=Listens(), node=node, name="first", report=each) for each in reports()]
    asyncio.run(_meet(links, None))
    wrong = "it sent an invalid answer: no port at which it listens"
    assert [link.report.problems for link in links] == [[wrong], []]
    with pytest.raises(HostError, match=f"^first: {wrong}$"):
        asyncio.run(free_port(links[0]))


STARTED = (sys.executable, "-c", PROGRAM)


def far_end(*orders: tuple[str, dict[str, Any]], command: Sequence[str] = STARTED) -> list[dict[str, Any]]:
    """The answers of a real far end."""

    async def all_of_them() -> list[dict[str, Any]]:
        connection = Connection(patience=PATIENCE)
        await connection.open(command, PATIENCE)
        try:
            return [await connection.ask(order, **fields) for order, fields in orders]
        finally:
            await connection.close()

    return asyncio.run(all_of_them())


def test_what_a_real_host_says(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    wanted = {
        "packages": ["torch", "no-such-package"],
        "interface": "lo",
        "port": None,
        "shared": __file__,
        "clear_caches": True,
    }
    data, none = (str(tmp_path / name) for name in ("data", "none"))
    asked = ("facts", {**wanted, "data_dirs": [data, none]})
    _, there = far_end(("open", {"work_dir": str(tmp_path / "work")}), asked)
    assert (
        there["interface"] == "loopback"
        and there["shared"] is True
        and there["clears_caches"] is os.access("/proc/sys/vm/drop_caches", os.W_OK)
        and there["versions"]["torch"]
        and there["versions"]["no-such-package"] is None
    )
    assert there["data"][data] and there["data"][none] is None
    assert there["python"] == ".".join(map(str, sys.version_info[:3]))


def test_what_a_host_kept_when_it_was_switched_off_is_removed(tmp_path: Path) -> None:
    runs = tmp_path / "work/runs"
    for name in ("left", "going_on"):
        (runs / name / "noderank0").mkdir(parents=True)
    os.utime(runs / "left", (1, 1))
    far_end(("open", {"work_dir": str(tmp_path / "work")}))
    assert [folder.name for folder in runs.iterdir()] == ["going_on"]


def test_a_fingerprint_is_of_names_and_sizes(tmp_path: Path) -> None:
    from proofmark.launch.far_end.facts import fingerprint

    (tmp_path / "one").write_text("12")
    (tmp_path / "link").symlink_to("nowhere")
    first = fingerprint(tmp_path)
    (tmp_path / "one").write_text("21")
    assert fingerprint(tmp_path) == first
    (tmp_path / "one").write_text("123")
    assert fingerprint(tmp_path) != first


@pytest.mark.parametrize(
    "order, fields, expected",
    [
        ("take", {"sizes": {"0" * 64: 1}, "body": b"x"}, "damaged on its way"),
        ("no_such_order", {}, "no_such_order"),
        ("facts", {}, "missing"),
    ],
)
def test_a_far_end_refuses(tmp_path: Path, order: str, fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(HostError, match=expected):
        far_end(("open", {"work_dir": str(tmp_path)}), (order, fields))


@pytest.mark.parametrize(
    "program, expected",
    [
        ("print('Welcome'); import time; time.sleep(99)", "no answer within 2 s"),
        ("while True: print('x' * 4096)", "something other than Proofmark answered"),
        ("while True: print('x' * 4096, end='')", "something other than Proofmark answered"),
        ("import sys; sys.exit('no such account')", "no such account"),
        ("import sys; sys.exit(3)", "exit code 3"),
    ],
)
def test_what_is_no_far_end(program: str, expected: str) -> None:
    async def tried() -> None:
        await Connection().open([sys.executable, "-uc", program], 2 if "sleep" in program else PATIENCE)

    with pytest.raises(HostError, match=expected):
        asyncio.run(tried())


@pytest.mark.parametrize("name", ["../escape.log", "/tmp/escape.log", "a/b.log", "x.sh"])
def test_a_host_may_only_send_logs(name: str, tmp_path: Path) -> None:
    hostile = (
        "import sys, time; sys.stdout.write('proofmark-far-end 1\\n'); sys.stdout.flush(); "
        f'print(\'{{"frame": "file", "name": "{name}", "offset": 0, "size": 1}}\\nx\', flush=True); time.sleep(600)'
    )

    async def lost() -> str | None:
        connection = Connection(NodeLogs(tmp_path / "home", LEAVES))
        await connection.open([sys.executable, "-uc", hostile], PATIENCE)
        await asyncio.to_thread(until, lambda: connection.lost, "the host to be let go of")
        await connection.close()
        return connection.lost

    (tmp_path / "home").mkdir()
    assert asyncio.run(lost()) == "it sent an invalid frame"
    assert [path.name for path in tmp_path.rglob("*")] == ["home"]


KNOWN: dict[str, Any] = {
    "chip": {"name": "Acme One", "peak_missing": "nobody knows"},
    "host": {"name": "h", "system": "Linux", "processor": "p", "cores": 2, "memory_bytes": 1},
    "devices": 8,
    "busy": ["device 3\x1b[2J is busy"],
    "package": {"vendor_version": {"value": "1"}},
}


def test_a_hosts_description_is_its_last_line() -> None:
    found = facts(f"a library's greeting\n{json.dumps(KNOWN)}\n")
    assert found["chip"]["name"] == "Acme One" and found["busy"] == ["device 3\\x1b[2J is busy"]
    assert found["host"]["cores"] == 2 and found["package"]["vendor_version"] == {"value": "1", "reason": None}


@pytest.mark.parametrize(
    "said, expected",
    [
        ("", "it sent an invalid description: nothing"),
        ("5", "it sent an invalid description: Input should be a valid dictionary"),
        ("[" * 100_000, "it sent an invalid description: [[["),
        (json.dumps(KNOWN | {"work_dir": "/"}), "it sent an invalid description: work_dir: Extra inputs"),
        (json.dumps(KNOWN | {"devices": -1}), "it sent an invalid description: devices: Input should be greater"),
    ],
)
def test_what_is_no_description_is_a_line(said: str, expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)) as refused:
        facts(said)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "scale, known, expected",
    [
        ("A100x2x8", {}, "scale A100x2x8 is for another chip than its H100 80GB"),
        ("H100x2x9", {}, "scale H100x2x9 needs 9 devices of one chip, it has 8"),
        ("2x8", {"busy": ["device 3 is used by process 7"]}, "device 3 is used by process 7"),
    ],
)
def test_a_host_that_does_not_do_for_a_scale(scale: str, known: dict[str, Any], expected: str) -> None:
    host = {"chip": {"name": "H100 80GB"}, "devices": 8, "busy": []} | known
    assert DescribeRequest("x", "fp32", "", Scale.parse(scale), True).problems(host) == [expected]
    assert DescribeRequest("x", "fp32", "", Scale.parse("H100x2x8"), True).problems(host | {"busy": []}) == []


@pytest.mark.parametrize(
    "scales, expected",
    [
        ("1x8 2x7", []),
        ("1x1 2x7 2x8", ["scale 2x8 needs 8 devices of one chip, it has 7"]),
        ("2x1 A100x2x8", []),
        ("A100x2x1", ["scale A100x2x1 is for another chip than its H100 80GB"]),
    ],
)
def test_the_scales_of_a_session_are_demanded_of_hosts_that_they_take(scales: str, expected: list[str]) -> None:
    """Those for other chips are not, where some are for the hosts' own: a vendor offers them for all of its chips."""
    both = reports(chip={"name": "H100 80GB"}, devices=7)
    both[0].facts |= {"chip": {"name": "H100 80GB"}, "devices": 8}
    demand(both, [Scale.parse(scale) for scale in scales.split()], DescribeRequest("x", "fp32", "", None, True))
    assert both[1].problems == expected


def test_what_is_asked_of_a_host_is_whole_in_a_ticket(tmp_path: Path) -> None:
    asked = DescribeRequest("x", "fp32", "gpu", Scale.parse("H100x2x8"), True, "process")
    ticket = Ticket(
        name="job",
        module="m",
        spec="{}",
        leaves=(),
        nodes=2,
        independent=False,
        packages=(),
        described=asked,
        environment={},
    )
    written = tmp_path / "ticket.json"
    written.write_text(ticket.model_dump_json())
    assert read_wire(written, Ticket) == ticket
    assert ticket.described.command("python3", "code")[-5:] == ["x", "code/vendors", "fp32", "gpu", "process"]
    for wrong, expected in (
        ({"scale": "2x8x"}, "is not a scale"),
        ({"scale": 8}, "is not a scale"),
        ({"node": 1}, "node"),
    ):
        whole = ticket.model_dump(mode="json")
        written.write_text(json.dumps({**whole, "described": {**whole["described"], **wrong}}))
        with pytest.raises(ValueError, match=f"described.*{expected}"):
            read_wire(written, Ticket)


def test_how_long_a_host_may_take_is_the_cluster_files_to_say(tmp_path: Path) -> None:
    cluster: Any = Cluster(work_dir=str(tmp_path), answer_timeout=0.3)
    setup = HostSetup(Here(), cluster, CodeTree.of(tmp_path, ()), (), DescribeRequest("cpu", "fp32", "", None, False))

    async def ask() -> None:
        (link,) = await Controller().links(setup, [Node("busy", "busy")], None)
        (tmp_path / "busy").touch()
        try:
            await link.connection.open(started_with(sys.executable), PATIENCE)
            await link.connection.ask("open", timeout=PATIENCE, work_dir=str(tmp_path))
            command = ["sh", "-c", 'while [ -e "$0" ]; do sleep 0.1; done', str(tmp_path / "busy")]
            slow: dict[str, Any] = {"command": command, "environment": {}, "seconds": 600.0, "mark": "M=me"}
            with pytest.raises(HostError, match="^no answer to 'ask' within 0.3 s, `answer_timeout`$"):
                await link.connection.ask("ask", **slow)
        finally:
            (tmp_path / "busy").unlink()
            await link.connection.close()

    asyncio.run(ask())


@pytest.mark.parametrize("reached", [False, True])
def test_hosts_that_are_taken_away_while_they_are_made_ready_are_at_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: bool
) -> None:
    """Each by itself, or when they are to call each other."""

    class Preempted(Here):
        """A job's, which is over."""

        async def gone(self) -> str:
            return "Slurm ended job 7 (PREEMPTED): revoked"

    async def made_ready(*given: object) -> None:
        pass

    async def listen(*given: object) -> int:
        raise HostError("ended with exit code 1")

    if reached:
        monkeypatch.setattr(readying, "_make_one_ready", made_ready)
        monkeypatch.setattr(readying, "_listen", listen)
    cluster = Cluster(work_dir=str(tmp_path))
    asked = DescribeRequest("cpu", "fp32", "", None, False)
    setup = HostSetup(Preempted(), cluster, CodeTree.of(tmp_path, ()), (), asked)

    async def ready() -> None:
        links = await Controller().links(setup, [Node(name, name, ("false",)) for name in ("n1", "n2")], None)
        await make_ready(setup, links, print)

    with pytest.raises(HostError, match=r"^Slurm ended job 7 \(PREEMPTED\): revoked$"):
        asyncio.run(ready())


def test_devices_that_take_too_long_are_told_by_the_key_that_gives_them_more(tmp_path: Path) -> None:
    """The first look at a host is the longest: packages come from a cold disk, and a driver may have to be loaded."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 600\n")
    python.chmod(0o755)
    cluster: Any = Cluster(work_dir=str(tmp_path), python=str(python), answer_timeout=0.3)
    setup = HostSetup(Here(), cluster, CodeTree.of(tmp_path, ()), (), DescribeRequest("cpu", "fp32", "", None, False))

    async def describe() -> list[str]:
        (link,) = await Controller().links(setup, [Node("slow", "slow")], None)
        await link.connection.open(started_with(sys.executable), PATIENCE)
        await link.connection.ask("open", timeout=PATIENCE, work_dir=str(tmp_path))
        await _describe(setup, link)
        await link.connection.close()
        return link.report.problems

    assert asyncio.run(describe()) == ["its devices cannot be described: no answer within 0.3 s, `answer_timeout`"]


def test_the_interpreter_itself_has_what_it_needs_to_start(tmp_path: Path) -> None:
    """A module's Python is not found without its PATH, or ends for want of its library; packages come by PYTHONPATH."""
    python, package = tmp_path / "bin/of-a-module", tmp_path / "packages/lent-1.0.dist-info"
    for folder in (python.parent, package):
        folder.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\n[ "$LD_LIBRARY_PATH" = /its/lib ] && exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: lent\nVersion: 1.0\n")
    variables = {"PATH": f"{python.parent}:{os.defpath}", "PYTHONPATH": str(package.parent), "NCCL_DEBUG": "INFO"}

    def known(**more: str) -> str:
        cluster: Any = Cluster(work_dir=str(tmp_path), python=python.name, environment=variables | more)
        described = DescribeRequest("cpu", "fp32", "", None, False)
        setup = HostSetup(Here(), cluster, CodeTree.of(tmp_path, ()), (), described)
        command, _ = asyncio.run(setup.far_end(Node("far", "far"), cluster.python))
        asked = {"packages": ["lent"], "interface": None, "port": None, "data_dirs": [], "shared": None}
        orders = ("open", {"work_dir": str(tmp_path)}), ("facts", {**asked, "clear_caches": False})
        return str(far_end(*orders, command=command)[1]["versions"]["lent"])

    assert known(LD_LIBRARY_PATH="/its/lib") == "1.0"
    with pytest.raises(HostError, match="exit code 1"):
        known()


def opened(command: list[str]) -> None:
    """Open a connection by a command, and close it."""

    async def open_and_close() -> None:
        connection = Connection()
        try:
            await connection.open(command, PATIENCE)
        finally:
            await connection.close()

    asyncio.run(open_and_close())


@pytest.mark.parametrize("shell", ["sh", "tcsh"])
def test_a_far_end_starts_by_whatever_shell_its_user_has(shell: str) -> None:
    """csh ends a word at a line's end, within quotes too, and takes what comes then for commands."""
    lead = (program(shell, "apt-get install tcsh"), "-c")
    assert not {*"\n!\\'"} & {*started_with("python3")[-1]}
    opened(Node("far", "far", lead, through_shell=True).command(started_with(sys.executable)))
    with pytest.raises(HostError, match="/no/python3: .*not found"):
        opened(Node("far", "far", lead, through_shell=True).command(started_with("/no/python3")))


def test_nothing_is_imported_from_where_a_far_end_is_started(tmp_path: Path) -> None:
    """A login's home, or the /tmp that Slurm takes where the session's directory is not on the node."""
    for name in ("base64", "queue", "zlib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'{__name__} is not Python itself')")
    opened(["sh", "-c", 'cd "$0" && exec "$@"', str(tmp_path), *started_with(sys.executable)])


def test_an_older_python_says_what_it_is(tmp_path: Path) -> None:
    assert f">={'.'.join(map(str, OLDEST))}" in (Path(__file__).parents[3] / "pyproject.toml").read_text()
    older = tmp_path / "python3.6"
    source = "import sys; sys.version_info = (3, 6, 9); exec(sys.argv.pop(3))"
    older.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{source}' \"$@\"\n")
    older.chmod(0o755)
    with pytest.raises(HostError, match=r"is Python 3\.6, older than 3\.11$"):
        opened(started_with(str(older)))


def test_a_shell_that_repeats_the_whole_command_is_told_by_its_beginning() -> None:
    complaint = ["sh", "-c", 'echo "fish: Unknown command: $*" >&2; exit 127', "sh"]
    with pytest.raises(HostError, match="^fish: Unknown command: python9 -u -c .{,200}$"):
        opened([*complaint, *started_with("python9")])
