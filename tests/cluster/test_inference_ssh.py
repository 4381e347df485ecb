"""Inference on a host over ssh: the case's process and its monitor are there, what they say is here."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from proofmark.inference.node import remote
from tests.cluster.conftest import Campus
from tests.cluster.declared import declare, reached
from tests.cluster.site import Ask
from tests.cluster.test_ssh import COUNTING, cut_link, one_line_table, rebooted
from tests.e2e.conftest import Ran, clean


def broken(ran: Ran, step: str) -> str:
    """Why a step failed, of a session that says ERROR."""
    assert ran.code == 17, ran.output
    clean(ran)
    assert ran.verdict()[0] == "ERROR"
    reason = ran.record().step(step).reason
    assert reason is not None
    return reason


def nothing_is_left(campus: Campus) -> None:
    assert campus.is_empty(), [campus.hosts.processes(0), campus.hosts.processes(1)]
    assert [list((host.work / "runs").iterdir()) for host in campus.hosts.hosts] == [[], []]


def test_two_cases_on_the_first_host(campus: Campus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(campus.house, monkeypatch)
    campus.house.add_case("other", {"compiler": "onnx"})
    python, counted = tmp_path / "counting", tmp_path / "started"
    python.write_text(COUNTING.format(file=counted, python=sys.executable))
    python.chmod(0o755)
    ran = campus.infer("--monitor-interval", "0.2", python=str(python))
    assert ran.code == 0, ran.output
    assert len(counted.read_text().splitlines()) == 2, "each host was connected to once"
    first = campus.hosts.hosts[0]
    for case in ("tiny", "other"):
        record = ran.record(case)
        assert record.verdict is not None and record.verdict.kind == "PASS"
        (host,) = record.launched
        assert (host.name, record.host.name, record.device) == (first.name, first.hostname, 0)
        assert host.skew is not None and abs(host.skew) < 0.5
        assert record.begun is not None and record.engine is not None
        assert record.started < record.begun < record.engine.rounds[0].started + 1
        assert {"proofmark", "python", "torch"} <= record.versions.keys()
        assert record.chip.name == "fake chip" and record.monitoring is not None and record.monitoring.samples > 1
        assert record.corrupt_lines == 0 and set(ran.steps(case).values()) <= {"done", "skipped"}
        assert {path.name for path in (ran.case_dir(case) / "noderank0").iterdir()} == {*remote.LEAVES, "monitor.csv"}
        assert record.kept == ()
        reached(ran, record, ran.case_dir(case) / "noderank0/worker.log")
    nothing_is_left(campus)
    assert any((first.work / "cache" / "weights").rglob("*.safetensors")), "trained there once"


def test_packages_that_come_by_pythonpath(campus: Campus, tmp_path: Path) -> None:
    """As an accelerator's runtime has them. What is named as the suite is, is not found in its place."""
    lent = tmp_path / "site-packages"
    (lent / "proofmark").mkdir(parents=True)
    (lent / "proofmark/__init__.py").write_text("raise ImportError('not the suite')\n")
    (lent / "runtime.py").write_text("")
    compiler = campus.house.root / "vendors/fake/honest.py"
    compiler.write_text(compiler.read_text().replace("import torch\n", "import runtime\nimport torch\n", 1))
    assert campus.infer().code != 0
    campus.write(environment={"OMP_NUM_THREADS": "1", "HOUSE": str(campus.house.root), "PYTHONPATH": str(lent)})
    ran = campus.house.run("--cluster", str(campus.file), *campus.options)
    assert ran.code == 0, ran.output


def test_what_is_wrong_with_hosts_is_told_before_anything_runs(campus: Campus) -> None:
    looked = campus.infer("--preflight-only")
    assert looked.code == 0 and "all 2 hosts are ready" in looked.output, looked.output
    one_line_table(campus.infer(interface="eth7"), "of 2 hosts 2 are not ready", "interface eth7 is missing")
    ran = campus.infer("-n", "2")
    assert ran.code == 4 and "remove -n" in ran.output, ran.output


@pytest.mark.parametrize(
    "trouble, step, expected",
    [
        ("tiny.data=SIGKILL", "data_and_model", "died of signal 9 (SIGKILL)"),
        ("tiny.data=raise", "data_and_model", "RuntimeError: trouble in data"),
        ("tiny.data=hang", "data_and_model", "gave no sign of life"),
    ],
)
def test_what_ends_a_case_there_is_told_here(campus: Campus, trouble: str, step: str, expected: str) -> None:
    patience = ("--setup-timeout", "60") if "hang" in trouble else ()
    ran = campus.infer(*patience, trouble=trouble)
    assert expected in broken(ran, step), ran.output
    record = ran.record()
    assert (ran.case_dir() / "noderank0" / "worker.log").is_file()
    if "hang" in trouble:
        assert "trouble.py" in (record.step(step).detail or ""), "where it was"
    nothing_is_left(campus)


def test_a_step_that_takes_too_long_there(campus: Campus) -> None:
    ran = campus.infer("--step-timeout", "6", trouble="tiny.data=sleep")
    assert "took longer than the 6 s of --step-timeout" in broken(ran, "data_and_model")
    nothing_is_left(campus)


@pytest.mark.parametrize("trouble", [cut_link, rebooted])
def test_a_host_that_goes_in_the_middle_is_named(campus: Campus, trouble: object) -> None:
    assert callable(trouble)
    name = campus.hosts.hosts[1].name
    session = campus.start_inference(trouble="tiny.data=sleep", hosts=[name], silence_timeout=20)
    campus.house.wait_for_trouble(session)
    trouble(campus)
    ran = campus.house.end(session)
    assert broken(ran, "data_and_model").startswith(f"{name}: "), ran.output
    assert campus.is_empty() and campus.house.becomes_empty()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_an_end_of_the_session_leaves_nothing_there(campus: Campus, number: signal.Signals) -> None:
    session = campus.start_inference(trouble="tiny.data=hang")
    campus.house.wait_for_trouble(session)
    os.kill(session.pid, number)
    ran = campus.house.end(session)
    nothing_is_left(campus)
    assert campus.house.becomes_empty()
    if number is signal.SIGINT:
        assert ran.record().interrupted == "data_and_model"


def test_a_case_there_is_stopped_by_the_id_of_its_job(campus: Campus, ask_jobs: Ask) -> None:
    session = campus.start_inference(trouble="tiny.data=sleep")
    campus.house.wait_for_trouble(session)
    job = campus.house.job("inference/tiny")
    (line,) = [line for line in ask_jobs("list")[1].splitlines() if line.startswith(job)]
    assert " ssh " in line and " inference/tiny " in line and campus.hosts.hosts[0].name in line
    assert ask_jobs("status", job)[0] == 0
    assert ask_jobs("stop", job) == (0, f"{job}  failed\n")
    ran = campus.house.end(session)
    assert broken(ran, "data_and_model") == f"job {job} was stopped by its id", ran.output
    nothing_is_left(campus)


def test_what_a_failed_run_left_comes_home(campus: Campus) -> None:
    campus.house.vendor_yaml().write_text("compiler: onnx\n")
    ran = campus.infer(trouble="worker.framework=raise")
    kept = {each.path for each in ran.record().kept}
    assert ran.code == 17 and "noderank0/worker.log" in kept, ran.output
    ran = campus.infer("--keep-artifacts")
    assert ran.code == 0, ran.output
    onnx = ran.case_dir() / "noderank0" / "model.onnx"
    assert onnx.stat().st_size > 0
    nothing_is_left(campus)


LIE = """#!{python}
import os, sys
if "proofmark.inference.node.agent" in sys.argv:
    with open(os.path.join(os.path.dirname(sys.argv[3]), "noderank0", "answers.jsonl"), "w") as answers:
        answers.write({said!r} + "\\n")
    sys.stdin.read()
else:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
"""


def test_a_host_that_answers_rubbish_is_let_go_of(campus: Campus, tmp_path: Path) -> None:
    (tmp_path / "python").write_text(LIE.format(python=sys.executable, said="{"))
    (tmp_path / "python").chmod(0o755)
    assert "not JSON" in broken(campus.infer(python=str(tmp_path / "python")), "init")
    nothing_is_left(campus)
