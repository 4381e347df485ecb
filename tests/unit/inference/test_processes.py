"""What becomes of a case where this machine has no room for another process."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from proofmark.inference.node import processes
from proofmark.inference.node.processes import Ending, ProcessesHere
from proofmark.inference.options import RunOptions
from proofmark.inference.plan import Plan
from proofmark.inference.run import CaseRun
from proofmark.rules.config import Resolution
from proofmark.vendor.hardware.devices import Assignment
from proofmark.vendor.introduction.answers import IntroducedVendor
from proofmark.vendor.registry import FoundVendor
from tests.unit.inference.test_collect import CONFIG, begin

WHY = "[Errno 11] Resource temporarily unavailable"


def refused(*_: Any, **__: Any) -> Any:
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


class Worker:
    """Stands in for a case's process."""

    def __init__(self, *_: Any) -> None:
        self.child = SimpleNamespace(pid=1, identity=None, mark=None)
        self.killed = False
        workers.append(self)

    def kill(self) -> None:
        self.killed = True

    def dismiss(self) -> None:
        pass

    def close(self) -> None:
        pass


workers: list[Worker] = []


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    workers.clear()
    monkeypatch.setattr(processes, "CaseWorker", Worker)
    host = {"cache_dir": str(tmp_path), "environment": {}, "device": None, "isolation": "wall"}
    spec = SimpleNamespace(case=("m", "C"), vendor="acme", vendors_dir="vendors", compiler=None, config={"host": host})
    spec.sys_path, spec.patience, spec.imports, spec.step_timeout, spec.monitor_interval = (), None, (), None, 1.0
    spec.engine_container, spec.name = None, "inference/net"
    return spec


@pytest.fixture
def found() -> FoundVendor:
    vendor = IntroducedVendor.__new__(IntroducedVendor)
    vendor.answers = {}
    return cast(FoundVendor, SimpleNamespace(vendor=vendor))


def test_without_a_monitor_it_goes_on(
    spec: Any, found: FoundVendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MonitorProcess", refused)
    here = ProcessesHere(spec, found, tmp_path, Assignment({}, None))
    assert here.close() == Ending(f"the monitor could not be started: {WHY}")
    assert not workers[0].killed


def test_one_that_cannot_be_written_down_leaves_no_process(
    spec: Any, found: FoundVendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes.JobFile, "begin", refused)
    with pytest.raises(OSError, match="temporarily"):
        ProcessesHere(spec, found, tmp_path, Assignment({}, None), tmp_path)
    assert workers[0].killed


def test_its_verdict_says_why_it_was_not_started(
    spec: Any, found: FoundVendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "CaseWorker", refused)
    monkeypatch.setattr(CaseRun, "_spec", lambda _: spec)
    monkeypatch.setattr(CaseRun, "_facts", lambda _: begin())
    run = CaseRun(
        resolution=Resolution(CONFIG, ()),
        plan=Plan(),
        found=found,
        case=("m", "C"),
        run_dir=tmp_path,
        device=Assignment({}, None),
        options=RunOptions(),
        on_progress=lambda _: None,
        launcher=None,
        imports=(),
        packages=(),
    )
    assert run.begin()["status"] == "failed"
    verdict = run.finish().verdict
    assert verdict and verdict.kind == "ERROR"
    assert verdict.reasons == (f"step init failed: its processes could not be started: {WHY}",)
