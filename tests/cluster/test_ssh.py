"""Trainings on two hosts over ssh: real sshds, real ranks, a network that can be cut."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.cluster.conftest import Campus
from tests.cluster.declared import declare, reached
from tests.cluster.netns import Hosts
from tests.cluster.site import (
    MIDWAY,
    Ask,
    failure,
    known_as_lost,
    model_comes_home,
    recorded,
    steps_come_home,
)
from tests.e2e.conftest import House, Ran, clean, one_line_answer
from tests.waiting import PATIENCE, name_of

COUNTING = """#!/bin/sh
[ "$1" != -u ] || echo >> {file}
exec {python} "$@"
"""


def counting_far_ends(folder: Path) -> tuple[Path, Callable[[], int]]:
    """An interpreter for hosts that counts the far ends which it is started for, and their count."""
    python, file = folder / "counting", folder / "started"
    python.write_text(COUNTING.format(file=file, python=sys.executable))
    python.chmod(0o755)
    return python, lambda: len(file.read_text().splitlines())


def test_trainings_on_hosts_that_stay_connected(
    campus: Campus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(campus.house, monkeypatch)
    python, started = counting_far_ends(tmp_path)
    ran = campus.run("--scale", "1x1", "-k", "1x1 or 2x1", python=str(python))
    assert ran.code == 0 and started() == 2, ran.output
    assert [host.name for host in recorded(ran, "1x1").runs[0].launched] == [campus.hosts.hosts[0].name]
    record = recorded(ran)
    assert record.verdict is not None and record.verdict.kind == "PASS"
    assert [rank.rank for rank in record.runs[0].ranks] == [0, 1]
    folder = ran.run_dir / "training/tiny/2x1/round1"
    for node in (0, 1):
        names = {path.name for path in (folder / f"noderank{node}").iterdir()}
        assert names >= {"agent.log", "agent.jsonl", "monitor.jsonl", f"rank{node}.jsonl", f"rank{node}.log"}
    reached(ran, record, *(folder / f"noderank{rank}/rank{rank}.log" for rank in (0, 1)))
    launched = record.runs[0].launched
    assert [host.name for host in launched] == [host.name for host in campus.hosts.hosts]
    assert all(host.skew is not None and abs(host.skew) < 0.5 for host in launched)
    assert record.runs[0].caches_cleared is False and launched[0].name in ran.output
    assert campus.is_empty()
    assert [list((host.work / "runs").iterdir()) for host in campus.hosts.hosts] == [[], []]


def test_caches_are_cleared_where_that_is_allowed_and_refused_where_not(campus: Campus) -> None:
    ran = campus.run(clear_caches=True, hosts=[campus.hosts.hosts[0].name], scale="1x1")
    if os.access("/proc/sys/vm/drop_caches", os.W_OK):
        assert ran.code == 0 and recorded(ran, "1x1").runs[0].caches_cleared is True, ran.output
    else:
        assert ran.code == 4 and ran.output.count("may not write /proc/sys/vm/drop_caches") == 1, ran.output


def test_hosts_are_asked_for_all_data_directories_of_a_run_list(campus: Campus) -> None:
    """But for those of runs that need more hosts than there are."""
    root = campus.house.root
    yaml = root / "suites/training/tiny.yaml"
    yaml.write_text(yaml.read_text() + "  standard:\n    parameters: {target: 0.9, flops: 480, max_epoch: 1}\n")
    entries = {f"tiny:pytorch:x:{hosts}:1:1": f"/no/{name}" for hosts, name in enumerate(("one", "two", "three"), 1)}
    root.joinpath("runs.yaml").write_text(f"CASES: {entries}\n")
    listed = ("--host-config", "runs.yaml", "--profile", "standard", "--preflight-only")
    campus.write(data_dir="/usr/bin")
    options = ("--vendor", "cpu", *campus.options, "--cluster", str(campus.file), *listed)
    ran = campus.house.end(campus.house.start(*options, suite="training"))
    missing = [ran.output.count(f"there is no directory /no/{name}\n") for name in ("one", "two", "three")]
    assert ran.code == 4 and missing == [2, 2, 0] and "/usr/bin" not in ran.output, ran.output


def test_code_is_sent_once_and_edits_on_a_host_are_noticed(new_campus: Campus) -> None:
    campus = new_campus
    assert campus.run("--preflight-only").code == 0
    (tree,) = (campus.hosts.hosts[1].work / "code").iterdir()
    written = {path: path.stat().st_mtime_ns for path in (campus.hosts.hosts[0].work / "objects").iterdir()}
    campus.house.root.joinpath("trouble.py").open("a").write("\n# changed\n")
    assert campus.run("--preflight-only").code == 0
    again = {path: path.stat().st_mtime_ns for path in (campus.hosts.hosts[0].work / "objects").iterdir()}
    assert len(again.keys() - written.keys()) == 1 and written.items() <= again.items(), "one file is new"
    newer = next(t for t in (campus.hosts.hosts[1].work / "code").iterdir() if t != tree)
    (newer / "proofmark" / "record" / "events" / "log.py").open("a").write("\n# mine\n")
    (newer / "left.py").write_text("")
    one_line_table(
        campus.run("--preflight-only"), "10.77", "edited on the host: left.py, proofmark/record/events/log.py; remove /"
    )


def test_a_vendors_link_has_no_file_of_the_users_sent(new_campus: Campus) -> None:
    """What lies in its folder its code may read, on whichever host."""
    campus = new_campus
    (campus.house.root / ".cache").mkdir(exist_ok=True)
    (campus.house.root / ".cache/own.key").write_text("geheim")
    link = campus.house.root / "vendors/fake/notes.txt"
    link.symlink_to("../../.cache/own.key")
    assert campus.run("--preflight-only").code == 0, "another vendor's is left out"
    link.rename(campus.house.root / "vendors/cpu/notes.txt")
    ran = campus.run("--preflight-only")
    assert ran.code == 4 and "vendors/cpu/notes.txt: it is a link out of its part of the tree" in ran.output, ran.output
    sent = [path.read_bytes() for host in campus.hosts.hosts for path in (host.work / "objects").iterdir()]
    assert sent and b"geheim" not in sent


def test_a_requirements_file_has_no_options_in_another_encoding(campus: Campus) -> None:
    file = campus.house.root / "required.txt"
    for content in (
        "\ufeff--index-url=https://example.org\n",
        "# coding: utf-7\n+AC0ALQ-index-url=https://example.org\n",
    ):
        file.write_text(content, encoding="utf-8")
        ran = campus.run("--preflight-only", requirements=["required.txt"])
        assert ran.code == 4 and "requirements: required.txt: expected " in ran.output, ran.output


def one_line_table(ran: Ran, *expected: str) -> None:
    """Exit code 4, and a table of hosts that says all of `expected`."""
    assert ran.code == 4, ran.output
    clean(ran)
    table = ran.output[ran.output.index("ERROR:") :]
    for words in expected:
        assert words in table, ran.output


def test_all_that_is_wrong_with_all_hosts_is_in_one_table(campus: Campus) -> None:
    names = [host.name for host in campus.hosts.hosts]
    campus.hosts.new_host_key(1)
    unknown = ["127.0.0.1", "no-such-host.invalid"]
    ran = campus.run("--preflight-only", hosts=[*names, *unknown], interface="eth7")
    one_line_table(ran, "of 4 hosts 4 are not ready", "interface eth7 is missing", "Host key verification failed")
    one_line_table(ran, "Connection refused", "Could not resolve hostname")
    assert campus.is_empty()


def test_disks_that_cannot_be_used(house: House, tmp_path: Path) -> None:
    (tmp_path / "hosts").mkdir()
    with Hosts(4, tmp_path / "hosts") as hosts:
        campus = Campus(house, hosts, tmp_path)
        work = str(campus.work)
        campus.on(1, "mount", "-o", "remount,ro,bind", work)
        campus.on(2, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", work)
        campus.on(3, "mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", work)
        ran = campus.run("--preflight-only")
    one_line_table(ran, "of 4 hosts 3 are not ready", "Read-only file system", "No space left on device")
    one_line_table(ran, "MiB are free in work_dir; 1 GiB is needed")


def test_what_the_cluster_file_says_must_be_there(campus: Campus) -> None:
    one_line_table(campus.run("--preflight-only", python="/no/python"), "/no/python: ", "of Python 3.11 or newer")
    one_line_table(campus.run("--preflight-only", work_dir="/proc/none"), "No such file or directory: '/proc/none")
    one_line_table(campus.run("--preflight-only", key=str(campus.file)), "Permission denied")
    one_line_answer(campus.run("--preflight-only", key="/no/key"), "key: no such file")


LISTEN = """
import socket, time
with socket.socket() as taken:
    taken.bind(("", 29511))
    taken.listen()
    print("listening", flush=True)
    time.sleep(999)
"""


def test_a_host_with_another_torch_and_one_that_cannot_be_reached(campus: Campus, tmp_path: Path) -> None:
    (metadata,) = Path(sysconfig.get_path("purelib")).glob("torch-*.dist-info/METADATA")
    changed = re.sub(r"(?m)^Version: .*", "Version: 1.0", metadata.read_text())
    (tmp_path / "METADATA").write_text(changed)
    campus.on(1, "mount", "--bind", str(tmp_path / "METADATA"), str(metadata))
    ran = campus.run("--preflight-only")
    one_line_table(ran, "of 2 hosts 1 is not ready", f"torch is 1.0, on {campus.hosts.hosts[0].name} it is ")
    campus.on(1, "umount", str(metadata))
    one_line_table(campus.run("--preflight-only", interface="lo"), "no other host can be reached by it")
    campus.on(1, "ip", "route", "add", "unreachable", campus.hosts.hosts[0].name)
    one_line_table(campus.run("--preflight-only"), f"cannot reach {campus.hosts.hosts[0].name}, port ")


def test_hosts_of_too_few_devices_for_a_selected_scale(campus: Campus) -> None:
    with (campus.house.root / "vendors/cpu/__init__.py").open("a") as stream:
        stream.write('\n\nCpu.torch_device = lambda self: "meta"\n')
    assert campus.run("--preflight-only").code == 0
    ran = campus.run("--preflight-only", scale="2x9")
    one_line_table(ran, "of 2 hosts 2 are not ready", "scale 2x9 needs 9 devices of one chip, it has 1")


def test_a_disk_that_fills_up_is_named(campus: Campus) -> None:
    campus.on(1, "mount", "-t", "tmpfs", "-o", "size=1100m", "tmpfs", str(campus.work))
    session = campus.start("--hang-timeout", "60", trouble="tiny.pause=0.1, tiny.rank1.step20=held")
    campus.house.wait_for_trouble(session)
    steps_come_home(campus.house, "noderank1/rank1.jsonl")
    campus.on(1, "mount", "-o", "remount,size=32m", str(campus.work))  # soon filled
    campus.on(1, "dd", "if=/dev/zero", f"of={campus.work}/filler", "bs=1M", check=False)
    campus.house.release()
    ran = campus.house.end(session)
    assert ran.code == 17 and "its disk is full" in failure(ran), ran.output
    assert campus.hosts.hosts[1].name in failure(ran)


LIE = """#!{python}
import base64, os, re, sys, zlib
def lie(found):
    source = zlib.decompress(base64.b64decode(found[1]))
    source = source.replace(b"sizes=sent", b"sizes={{**sent, 'monitor.jsonl': 1 << 40}}")
    return 'b64decode("' + base64.b64encode(zlib.compress(source)).decode() + '")'
said = [re.sub(r'b64decode[(]"([^"]*)"[)]', lie, text) for text in sys.argv[1:]]
os.execv({python!r}, [{python!r}, *said])
"""


def test_a_training_whose_logs_have_not_all_come_home_is_no_pass(campus: Campus, tmp_path: Path) -> None:
    (tmp_path / "python").write_text(LIE.format(python=sys.executable))
    (tmp_path / "python").chmod(0o755)
    ran = campus.run(python=str(tmp_path / "python"), hosts=[campus.hosts.hosts[0].name], scale="1x1")
    assert ran.code == 17 and "monitor.jsonl has not come home whole" in failure(ran, "1x1"), ran.output


def test_a_port_that_is_taken(campus: Campus) -> None:
    cell = campus.hosts.hosts[0].cell
    assert cell is not None
    with subprocess.Popen(cell.inside(sys.executable, "-c", LISTEN), stdout=subprocess.PIPE) as taken:
        assert taken.stdout is not None and taken.stdout.readline()
        one_line_table(campus.run("--preflight-only", master_port=29511), "port 29511 (master_port) is taken")
        taken.kill()


def killed_sshd(campus: Campus) -> None:
    campus.hosts.kill_sshd(1)


def cut_link(campus: Campus) -> None:
    campus.hosts.link_down(1)


def rebooted(campus: Campus) -> None:
    campus.hosts.delete(1)


def killed_agent(campus: Campus) -> None:
    (agent,) = [each for each in campus.hosts.processes(1) if name_of(each) == "pt_elastic"]
    agent.kill()


@pytest.mark.parametrize(
    "trouble, expected",
    [
        (killed_sshd, ""),
        (cut_link, "stopped answering"),
        (rebooted, ""),
        (killed_agent, "its agent died of signal 9 (SIGKILL)"),
    ],
)
def test_a_host_that_goes_is_named(campus: Campus, trouble: object, expected: str) -> None:
    assert callable(trouble)
    session = campus.start("--hang-timeout", "80", trouble=MIDWAY + "sleep", silence_timeout=20)
    campus.house.wait_for_trouble(session)
    steps_come_home(campus.house)
    trouble(campus)
    ran = campus.house.end(session)
    assert ran.code == 17, ran.output
    name = campus.hosts.hosts[1].name
    assert failure(ran).startswith(f"{name}: ") and expected in failure(ran), failure(ran)
    assert recorded(ran).runs[0].losses, "what was measured is kept"
    assert campus.is_empty(), [campus.hosts.processes(0), campus.hosts.processes(1)]


def test_a_link_that_comes_back_soon_is_survived(campus: Campus) -> None:
    session = campus.start(trouble="tiny.pause=0.05, tiny.rank1.step20=held")
    campus.house.wait_for_trouble(session)
    campus.hosts.link_down(1)
    campus.house.release()
    time.sleep(3)
    campus.hosts.link_up(1)
    ran = campus.house.end(session)
    assert ran.code == 0, ran.output


def test_a_host_that_is_silent_when_others_fail_is_named_before_it_is_lost(campus: Campus) -> None:
    """Ranks that wait for one that went with its host are found to hang, long before the host is given up."""
    session = campus.start("--hang-timeout", "20", trouble=MIDWAY + "sleep", silence_timeout=60)
    campus.house.wait_for_trouble(session)
    cut_link(campus)
    ran = campus.house.end(session)
    assert ran.code == 17, ran.output
    assert re.match(rf"{campus.hosts.hosts[1].name}: stopped answering \d+ s ago", failure(ran)), failure(ran)
    assert campus.is_empty(2 * PATIENCE), "its far end has waited in vain"


def test_a_connection_that_is_cut_for_longer_is_bridged(campus: Campus) -> None:
    """Ranks have connections of their own, and go on."""
    session = campus.start(trouble="tiny.pause=0.1, tiny.rank1.step20=held")
    campus.house.wait_for_trouble(session)
    below = psutil.Process(session.pid).children(recursive=True)
    (ssh,) = [each for each in below if name_of(each) == "ssh" and campus.hosts.hosts[1].name in each.cmdline()]
    ssh.suspend()
    campus.house.release()
    try:
        time.sleep(25)  # a silence is told after 8 s in which the session has looked, and it may stand still as well
    finally:
        ssh.resume()
    ran = campus.house.end(session)
    assert ran.code == 0, ran.output
    assert "stopped answering" in ran.output and "answers again" in ran.output, ran.output


@pytest.mark.parametrize("trouble, expected", [("SIGKILL", " was killed by signal 9"), ("hang", " hung in step")])
def test_a_rank_on_the_second_host_is_named(campus: Campus, trouble: str, expected: str) -> None:
    ran = campus.run("--hang-timeout", "20", trouble=MIDWAY + trouble)
    assert ran.code == 17 and failure(ran).startswith(f"rank 1 on {campus.hosts.hosts[1].name}{expected}"), ran.output
    assert recorded(ran).runs[0].failure.ranks == (1,)  # type: ignore[union-attr]
    assert campus.is_empty()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_an_end_of_the_session_leaves_nothing_on_any_host(
    campus: Campus, number: signal.Signals, ask_jobs: Ask
) -> None:
    session = campus.start(trouble=MIDWAY + "hang")
    campus.house.wait_for_trouble(session)
    job = campus.house.job("training/tiny/2x1/round1")
    assert f"{job}  running " in ask_jobs("list")[1]
    model_comes_home(campus.house)
    os.kill(session.pid, number)
    campus.house.end(session)
    assert campus.is_empty(), [campus.hosts.processes(0), campus.hosts.processes(1)]
    assert campus.house.becomes_empty()
    assert [list((host.work / "runs").iterdir()) for host in campus.hosts.hosts] == [[], []]
    if number is signal.SIGKILL:
        known_as_lost(job, "ssh", [host.name for host in campus.hosts.hosts], ask_jobs)
        campus.house.mark.unlink()
        assert campus.run(scale="1x1").code == 0, "the next run starts clean"


def test_a_host_that_was_lost_between_two_trainings_is_connected_again(campus: Campus, tmp_path: Path) -> None:
    python, started = counting_far_ends(tmp_path)
    trouble = "tiny.pause=0.3"  # it lasts longer than a machine stands still
    session = campus.start("--scale", "1x1", "-k", "1x1 or 2x1", trouble=trouble, python=str(python))
    steps_come_home(campus.house, scale="1x1")
    campus.hosts.delete(1)
    campus.hosts.start(1)
    ran = campus.house.end(session)
    assert ran.code == 0 and started() == 3, ran.output
    assert campus.is_empty()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_an_end_of_the_session_leaves_nothing_where_nothing_ran_yet(campus: Campus, number: signal.Signals) -> None:
    session = campus.start(trouble="tiny.rank0.step5=hang", scale="1x1")
    campus.house.wait_for_trouble(session)
    assert not campus.is_empty(0), "the second host is connected"
    os.kill(session.pid, number)
    campus.house.end(session)
    assert campus.is_empty() and campus.house.becomes_empty()


def test_two_sessions_on_the_same_hosts(campus: Campus, tmp_path: Path) -> None:
    first = campus.start("--results-dir", "one", trouble="tiny.pause=0.02")
    second = campus.start("--results-dir", "two", trouble="tiny.pause=0.02")
    codes = [campus.house.end(session, results=name).code for session, name in ((first, "one"), (second, "two"))]
    assert codes == [0, 0]
    assert campus.is_empty()
