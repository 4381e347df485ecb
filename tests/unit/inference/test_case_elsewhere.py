"""A case's run on a host that a launcher is to find."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from proofmark.inference.node.answers import FILE
from proofmark.inference.options import RunOptions
from proofmark.inference.plan import Plan
from proofmark.inference.run import CaseRun
from proofmark.launch.job import Launcher
from proofmark.rules.config import Resolution
from proofmark.vendor.hardware.devices import Assignment
from proofmark.vendor.registry import FoundVendor
from tests.unit.inference.test_collect import CONFIG, begin
from tests.unit.inference.test_node_answers import READY, Agent

LOST = "WARNING not all that it left there came home: "


class Failed(Agent):
    """A job that has ended, of a host that may never have been reached."""

    def status(self) -> str:
        return "failed"

    def facts(self) -> dict[str, Any]:
        return {"hosts": [], "lost": [{"reason": "no such host"}]}


@pytest.mark.parametrize("answer, lost", [("", False), (READY, True)], ids=["never reached", "gone"])
def test_only_what_was_there_can_be_lost(
    answer: Any, lost: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SimpleNamespace(
        directory=str(tmp_path),
        name="inference/net",
        config={"host": {"cache_dir": str(tmp_path)}},
        sys_path=(),
        node_directory=lambda _: tmp_path,
        step_timeout=None,
    )
    monkeypatch.setattr(CaseRun, "_spec", lambda _: spec)
    monkeypatch.setattr(CaseRun, "_facts", lambda _: begin())
    (tmp_path / FILE).write_text(answer and f"{json.dumps(answer)}\n")
    told: list[dict[str, Any]] = []
    run = CaseRun(
        resolution=Resolution(CONFIG, ()),
        plan=Plan(),
        found=cast(FoundVendor, None),
        case=("m", "C"),
        run_dir=tmp_path,
        device=Assignment({}, None),
        options=RunOptions(),
        on_progress=told.append,
        launcher=cast(Launcher, Failed()),
        imports=(),
        packages=(),
    )
    assert (run.begin()["status"] == "done") == lost
    record = run.finish()
    assert record.failed and record.step("init").reason == (None if lost else "no such host")
    assert any(str(each.get("note")).startswith(LOST) for each in told) == lost
