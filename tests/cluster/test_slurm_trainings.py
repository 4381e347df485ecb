"""Runs under a real Slurm: jobs that wait, that are taken away, and that never outlive their session."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.declared import declare, reached
from tests.cluster.site import (
    MIDWAY,
    Ask,
    Site,
    failure,
    known_as_lost,
    model_comes_home,
    recorded,
    steps_come_home,
)
from tests.cluster.slurm import Slurm
from tests.e2e.conftest import House, one_line_answer
from tests.waiting import until


@pytest.fixture
def site(house: House, slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Two nodes that share a disk, idle before and after."""
    for name, value in slurm.environment.items():
        monkeypatch.setenv(name, value)
    yield Site(house, tmp_path, ("--launcher", "slurm"), {"interface": "lo"})
    slurm.cancel_all()
    slurm.resume(*slurm.nodes)


def nothing_is_left(slurm: Slurm) -> None:
    """Neither a job nor a process."""
    until(lambda: not slurm.jobs() and not slurm.processes(), "nodes without jobs and processes", every=0.2)


SQUEUE = """#!/bin/sh
said=$({squeue} "$@"); code=$?
printf '%s\\n' "$said" >> {heard}
[ -z "$said" ] || printf '%s\\n' "$said"
exit $code
"""


def heard_of_the_queue(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether a session has asked for its job while that waited; it tells what it hears before it looks further."""
    own, heard = folder / "programs", folder / "heard"
    own.mkdir()
    (own / "squeue").write_text(SQUEUE.format(squeue=shutil.which("squeue"), heard=heard))
    (own / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(own), prepend=os.pathsep)
    return lambda: heard.exists() and "PENDING (" in heard.read_text()


def test_a_training_on_two_nodes_that_were_waited_for(
    site: Site, slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(site.house, monkeypatch)
    is_told = heard_of_the_queue(tmp_path, monkeypatch)
    for node in slurm.nodes:
        slurm.drain(node)
    session = site.start()
    until(lambda: [job.state for job in slurm.jobs()] == ["PENDING"], "a job in the queue", every=0.2)
    until(is_told, "the session to hear of it")
    slurm.resume(*slurm.nodes, idle=False)
    ran = site.house.end(session)
    assert ran.code == 0, ran.output
    assert ": PENDING (" in ran.output and "runs on n1, n2" in ran.output, ran.output
    record = recorded(ran)
    assert record.verdict is not None and record.verdict.kind == "PASS"
    folder = ran.run_dir / "training/tiny/2x1/round1"
    for node in (0, 1):
        names = {path.name for path in (folder / f"noderank{node}").iterdir()}
        assert names >= {"agent.jsonl", "monitor.jsonl", f"rank{node}.jsonl"}
    reached(ran, record, *(folder / f"noderank{rank}/rank{rank}.log" for rank in (0, 1)))
    nothing_is_left(slurm)
    assert list((site.work / "runs").iterdir()) == []


def cancelled(slurm: Slurm) -> None:
    slurm.cancel_all()


def out_of_time(slurm: Slurm) -> None:
    slurm.end_time_of_all()


def failed(slurm: Slurm) -> None:
    slurm.fail("n2")


@pytest.mark.parametrize(
    "trouble, expected",
    [
        (cancelled, "(CANCELLED)"),
        (out_of_time, "(TIMEOUT): Job "),
        (failed, "Node failure on n2"),
    ],
)
def test_slurms_reason_for_an_end_is_told(
    site: Site, slurm: Slurm, trouble: Callable[[Slurm], None], expected: str
) -> None:
    session = site.start("--hang-timeout", "100", trouble=MIDWAY + "sleep")
    site.house.wait_for_trouble(session)
    steps_come_home(site.house)
    (job,) = slurm.jobs()
    trouble(slurm)
    ran = site.house.end(session)
    assert ran.code == 17, ran.output
    cause = failure(ran)
    assert cause.startswith(f"Slurm ended job {job.number} ") and expected.format(job.number) in cause, cause
    assert recorded(ran).runs[0].losses, "what was measured is kept"
    nothing_is_left(slurm)


def test_slurms_reason_is_told_of_a_job_that_ends_while_its_hosts_are_made_ready(
    site: Site, slurm: Slurm, tmp_path: Path
) -> None:
    python, started = tmp_path / "slow", tmp_path / "started"
    python.write_text(f"#!/bin/sh\ntouch {started}\nexec sleep 600\n")
    python.chmod(0o755)
    session = site.start(python=str(python))
    until(started.exists, "a host to be asked")
    slurm.cancel_all()
    ran = site.house.end(session)
    assert ran.code == 17 and re.match(r"Slurm ended job \d+ \(CANCELLED\): ", cause := failure(ran)), ran.output
    assert "n1" not in cause, "its hosts are at no fault"
    nothing_is_left(slurm)


def test_a_rank_that_dies_under_slurm_is_named(site: Site, slurm: Slurm) -> None:
    ran = site.run(trouble=MIDWAY + "SIGKILL")
    assert ran.code == 17 and failure(ran) == "rank 1 on n2 was killed by signal 9", ran.output
    nothing_is_left(slurm)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_an_end_of_the_session_leaves_neither_job_nor_process(
    site: Site, slurm: Slurm, number: signal.Signals, ask_jobs: Ask
) -> None:
    session = site.start(trouble=MIDWAY + "hang")
    site.house.wait_for_trouble(session)
    job = site.house.job("training/tiny/2x1/round1")
    assert f"{job}  running " in ask_jobs("list")[1]
    model_comes_home(site.house)
    os.kill(session.pid, number)
    site.house.end(session)
    nothing_is_left(slurm)
    assert site.house.becomes_empty()
    if number is signal.SIGKILL:
        known_as_lost(job, "slurm", slurm.nodes, ask_jobs)


def test_an_end_of_the_session_in_the_queue_leaves_no_job(site: Site, slurm: Slurm) -> None:
    slurm.drain("n2")
    session = site.start()
    until(lambda: bool(slurm.jobs()), "a job in the queue", every=0.2)
    session.kill()
    site.house.end(session)
    nothing_is_left(slurm)


def test_what_slurm_refuses_is_told(site: Site, slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = site.run(partition="nope")
    assert ran.code == 17 and "invalid partition specified: nope" in failure(ran), ran.output
    looked = site.run("--preflight-only")
    assert looked.code == 0 and "all 2 hosts are ready" in looked.output, looked.output
    one_line_answer(site.run("--preflight-only", partition="nope"), "invalid partition specified: nope")
    nothing_is_left(slurm)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(tmp_path))
        one_line_answer(site.run(), "salloc, srun", "not found in PATH")


def test_inference_on_a_node_that_was_waited_for(
    site: Site, slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(site.house, monkeypatch)
    is_told = heard_of_the_queue(tmp_path, monkeypatch)
    for node in slurm.nodes:
        slurm.drain(node)
    session = site.start_inference()
    until(lambda: [job.state for job in slurm.jobs()] == ["PENDING"], "a job in the queue", every=0.2)
    until(is_told, "the session to hear of it")
    slurm.resume(*slurm.nodes, idle=False)
    ran = site.house.end(session)
    assert ran.code == 0 and ": PENDING (" in ran.output, ran.output
    record = ran.record()
    assert record.verdict is not None and record.verdict.kind == "PASS"
    assert [host.name for host in record.launched] == ["n1"] and record.monitoring is not None
    reached(ran, record, ran.case_dir() / "noderank0/worker.log")
    nothing_is_left(slurm)
    assert list((site.work / "runs").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_an_end_of_an_inference_session_leaves_no_job(site: Site, slurm: Slurm, number: signal.Signals) -> None:
    session = site.start_inference(trouble="tiny.data=hang")
    site.house.wait_for_trouble(session)
    os.kill(session.pid, number)
    site.house.end(session)
    nothing_is_left(slurm)
    assert site.house.becomes_empty()


def test_slurms_reason_for_an_end_of_inference_is_told(site: Site, slurm: Slurm) -> None:
    session = site.start_inference(trouble="tiny.data=sleep")
    site.house.wait_for_trouble(session)
    slurm.cancel_all()
    ran = site.house.end(session)
    reason = ran.record().step("data_and_model").reason
    assert ran.code == 17 and reason is not None and "(CANCELLED)" in reason, ran.output
    refused = site.infer(partition="nope")
    why = refused.record().step("init").reason
    assert refused.code == 17 and why is not None and "invalid partition specified: nope" in why, refused.output
    nothing_is_left(slurm)
