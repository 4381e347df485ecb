"""What the controller of several workers makes of their records."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.outputs.reporting import FAILURES, RECORDS, pytest_sessionfinish
from fixtures.sessions.parallel import _Controller
from fixtures.sessions.session import RUN_DIR
from fixtures.suites import SUITES
from proofmark.suite import find_suites
from tests.unit.records import record


def test_a_damaged_record_is_told_and_the_others_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "three"):
        (tmp_path / "inference" / name).mkdir(parents=True)
        record(case=name).save(tmp_path / "inference" / name / "record.json")
    (tmp_path / "inference" / "two").mkdir()
    (tmp_path / "inference" / "two" / "record.json").write_text('{"schema_version": 1')
    plugins = SimpleNamespace(getplugin=lambda name: None)
    suites = find_suites(Path(__file__).parents[2] / "suites")
    stash: dict[Any, Any] = {RUN_DIR: tmp_path, RECORDS: [], FAILURES: [], SUITES: suites}
    config: Any = SimpleNamespace(pluginmanager=plugins, stash=stash)
    session: Any = SimpleNamespace(config=config, exitstatus=0)
    finish = _Controller(config).pytest_sessionfinish(session)
    next(finish)
    pytest_sessionfinish(session, 0)
    assert [made.case for made, _ in config.stash[RECORDS]] == ["one", "three"]
    (told,) = config.stash[FAILURES]
    assert "two/record.json: not a run record" in told and "\n" not in told
    assert session.exitstatus == pytest.ExitCode.INTERNAL_ERROR
    assert (tmp_path / "report.html").is_file()
