"""What a vendor declares in environment.yaml reaches the processes that run its code, and none of the referee's."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.inference.engine.engine_process import EngineProcess
from proofmark.inference.engine.place.own_group import OwnGroup
from proofmark.inference.node import processes
from proofmark.process.environment import PASSES
from proofmark.training import job
from proofmark.training.node import agent_forks, node_monitor
from proofmark.vendor.environment import at_start

DECLARED = {"ACME_LOG": "1", "KMP_BLOCKTIME": "0"}


def given_to(fake: Any, seen: dict[str, Any], name: str) -> Any:
    """A class in whose place `fake` stands, with what it was given noted."""

    def make(*arguments: Any) -> Any:
        seen[name] = arguments
        return fake

    return make


def test_of_a_case_the_engine_and_the_monitor_have_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    child = SimpleNamespace(child=SimpleNamespace(pid=1))
    vendor = processes.IntroducedVendor.__new__(processes.IntroducedVendor)
    vendor.answers = {}
    monkeypatch.setattr(processes, "CaseWorker", given_to(child, seen, "worker"))
    monkeypatch.setattr(processes, "MonitorProcess", given_to(None, seen, "monitor"))
    host = {"cache_dir": str(tmp_path), "environment": DECLARED, "device": None, "isolation": "wall"}
    spec = SimpleNamespace(case=("m", "C"), vendor="acme", vendors_dir="vendors", compiler=None, config={"host": host})
    spec.sys_path, spec.patience, spec.imports, spec.step_timeout, spec.monitor_interval = (), None, (), None, 1.0
    spec.engine_container = None
    device: Any = SimpleNamespace(environment={"ACME_DEVICES": "3"}, index=3)
    found: Any = SimpleNamespace(vendor=vendor)
    made: Any = spec
    monkeypatch.setattr(processes, "threads_of_quota", lambda: {"OMP_NUM_THREADS": "3"})
    processes.ProcessesHere(made, found, tmp_path, device)
    worker, environment = seen["worker"][:2]
    assert environment["OMP_NUM_THREADS"] == "3", "engines are given what their case's process has"
    assert not DECLARED.keys() & environment.keys() and environment["ACME_DEVICES"] == "3"
    assert worker.config["host"]["environment"] == {**DECLARED, "ACME_DEVICES": "3"}
    assert seen["monitor"][1].items() >= at_start(DECLARED).items() and "ACME_DEVICES" not in seen["monitor"][1]


def test_what_is_read_when_a_process_begins_an_engine_begins_with(tmp_path: Path) -> None:
    engine = EngineProcess(OwnGroup(tmp_path, variables=DECLARED))
    try:
        begun = Path(f"/proc/{engine.pid}/environ").read_bytes().split(b"\0")
        assert b"KMP_BLOCKTIME=0" in begun and b"ACME_LOG=1" in begun
        assert not DECLARED.keys() & os.environ.keys() and "ACME_LOG" not in os.environ.get(PASSES, "")
    finally:
        os.kill(engine.pid, signal.SIGKILL)  # it would import torch first
        engine.close()


def test_of_a_training_ranks_and_monitor_have_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = {"cache_dir": str(tmp_path), "environment": DECLARED, "device": None, "isolation": "wall"}
    config = {"suite": "training", "case": "net", "host": host}
    spec: Any = SimpleNamespace(config=config, directory=str(tmp_path), nnodes=1, nproc=1, sys_path=(), vendor="acme")
    spec.setup_timeout = 60.0
    spec.vendors_dir = "vendors"
    launcher: Any = SimpleNamespace(submit=lambda each: each)
    submitted: Any = job.submit(spec, launcher)
    assert not DECLARED.keys() & submitted.environment.keys()
    seen: dict[str, Any] = {}
    monkeypatch.setattr(node_monitor, "MonitorProcess", given_to(None, seen, "monitor"))
    node_monitor._start(spec, 1.0, tmp_path)
    assert seen["monitor"][1].items() >= at_start(DECLARED).items()


@pytest.mark.parametrize("can_be_forked", [True, False])
def test_a_rank_has_them_forked_or_begun(can_be_forked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the end of its feeder, which nobody else keeps."""
    seen: dict[str, Any] = {}
    forked = SimpleNamespace(pid=7) if can_be_forked else None
    monkeypatch.setattr(agent_forks, "fork_module", given_to(forked, seen, "forked"))

    def begin(arguments: list[str], env: dict[str, str], **others: Any) -> Any:
        assert others["pass_fds"] == (end,) and arguments[-1] == str(end)
        seen["begun"] = env
        return SimpleNamespace(pid=8)

    monkeypatch.setattr(agent_forks.subprocess, "Popen", begin)
    arguments = [agent_forks.sys.executable, "-u", "-m", "rank"]
    started: dict[int, int] = {}
    end, other = os.pipe()
    ends: dict[int, tuple[int, ...]] = {0: (end,), 1: (other,)}
    agent_forks._begin(DECLARED, started, ends, arguments, {"RANK": "0"}, start_new_session=True)
    assert ends == {1: (other,)} and seen["forked"][2] == (0, 1, 2, end)
    os.close(other)
    with pytest.raises(OSError):
        os.close(end)
    assert started == {0: 7 if can_be_forked else 8}, "the agent need not believe the rank's own word"
    assert seen["forked"][3] == {**DECLARED, "RANK": "0"} and seen.get("begun", seen["forked"][3]) == seen["forked"][3]
