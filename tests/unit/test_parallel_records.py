"""What the controller of several workers makes of the records that they tell of, and of what else lies there."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.outputs.altered import altered
from fixtures.outputs.junit import asked_of
from fixtures.outputs.reporting import ALTERED, FAILURES, NOT_RUN, RECORDS, pytest_sessionfinish
from fixtures.policy import POLICY
from fixtures.sessions.parallel import TOLD, TOLD_OF, WANTED, _Controller, _untold
from fixtures.sessions.session import RUN_DIR
from fixtures.suites import SUITES
from proofmark.inference.outcome.record import RunRecord
from proofmark.inference.outcome.verdict import judge
from proofmark.record.integrity.chain import ChainedLog
from proofmark.record.integrity.manifest import write_manifest
from proofmark.record.parts import Verdict, VerdictKind
from proofmark.record.policy import default_policy
from proofmark.suite import find_suites
from tests.unit.records import record


def made(folder: Path, case: str, **changes: Any) -> tuple[RunRecord, Path]:
    """A judged record on disk, as its session wrote it."""
    where = folder / "inference" / case
    where.mkdir(parents=True)
    one = record(case=case, **changes)
    one = one.model_copy(update={"verdict": judge(one)})
    one.save(where / "record.json")
    return one, where


class Session:
    """A controller's, with workers that have told of records."""

    def __init__(self, folder: Path, told: list[tuple[str, str]], last: list[tuple[str, str]]) -> None:
        plugins = SimpleNamespace(getplugin=lambda name: None)
        suites = find_suites(Path(__file__).parents[2] / "suites")
        self.stash: dict[Any, Any] = {RUN_DIR: folder, RECORDS: [], FAILURES: [], NOT_RUN: [], SUITES: suites}
        self.stash[POLICY] = default_policy()
        option = SimpleNamespace(collectonly=False, setupplan=False)
        config: Any = SimpleNamespace(pluginmanager=plugins, stash=self.stash, option=option)
        session: Any = SimpleNamespace(config=config, exitstatus=0)
        controller = _Controller(config)
        controller.pytest_runtest_logreport(SimpleNamespace(**{TOLD: told}))  # type: ignore[arg-type]
        controller._nodes.append(SimpleNamespace(workeroutput={TOLD: last}))
        next(controller.pytest_sessionfinish(session))
        pytest_sessionfinish(session, 0)
        self.exit_code = int(session.exitstatus)

    @property
    def cases(self) -> list[str]:
        return [each.case for each, _ in self.stash[RECORDS]]


def test_a_damaged_record_is_told_and_the_others_are_kept(tmp_path: Path) -> None:
    (one, here), (three, there) = made(tmp_path, "one"), made(tmp_path, "three")
    broken = (str(tmp_path / "inference" / "two"), '{"schema_version": 1')
    session = Session(tmp_path, [(str(here), one.text()), broken], [(str(there), three.text())])
    assert session.cases == ["one", "three"]
    (told,) = session.stash[FAILURES]
    assert "two/record.json: not a run record" in told and "\n" not in told
    assert session.exit_code == pytest.ExitCode.INTERNAL_ERROR
    assert (tmp_path / "report.html").is_file()


def test_a_verdict_is_what_the_figures_say(tmp_path: Path) -> None:
    one, here = made(tmp_path, "one", dishonest=("it cheats",))
    passed = one.model_copy(update={"verdict": Verdict(kind=VerdictKind.PASS)})
    session = Session(tmp_path, [(str(here), passed.text())], [])
    assert session.cases == [] and "its verdict is not what its figures say" in session.stash[FAILURES][0]


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"partial": True}, 0),
        ({"partial": True, "dishonest": ("it cheats",)}, VerdictKind.FAIL_HONESTY.exit_code),
        ({"stopped": True}, VerdictKind.INSUFFICIENT.exit_code),
    ],
)
def test_that_a_part_was_selected_hides_nothing_but_itself(tmp_path: Path, changes: dict[str, Any], code: int) -> None:
    one, here = made(tmp_path, "one", **changes)
    assert Session(tmp_path, [(str(here), one.text())], []).exit_code == code


def test_a_record_that_no_worker_told_of_is_nobodys(tmp_path: Path) -> None:
    (one, here), (_, laid) = made(tmp_path, "one"), made(tmp_path, "laid")
    session = Session(tmp_path, [(str(here), one.text())], [])
    assert session.cases == ["one"]
    told = f"ERROR {laid}/record.json: it is not the record of a case of this session; somebody else put it there"
    assert session.stash[ALTERED] == [told] and session.exit_code == VerdictKind.ERROR.exit_code


def test_a_worker_tells_of_each_record_once(tmp_path: Path) -> None:
    one, here = made(tmp_path, "one")
    config: Any = SimpleNamespace(stash={RECORDS: [(one, here)], TOLD_OF: set()})
    assert _untold(config) == [(str(here), one.text())] and _untold(config) == []


class TestAltered:
    def test_what_is_as_it_was_written(self, tmp_path: Path) -> None:
        log = ChainedLog(tmp_path / "events.jsonl")
        log.write("run_begin")
        one, here = made(tmp_path, "one", log=log.seal)
        (tmp_path / "events.jsonl").rename(here / "events.jsonl")
        (here / "engine").mkdir()
        (here / "engine" / "record.json").write_text("a compiler's own")
        assert list(altered([(one, here)], tmp_path)) == []

    def test_a_record_that_was_edited_or_taken_away(self, tmp_path: Path) -> None:
        one, here = made(tmp_path, "one")
        path = here / "record.json"
        path.write_text(path.read_text().replace('"value":100.0', '"value":900.0', 1) + " ")
        assert list(altered([(one, here)], tmp_path)) == [
            f"ERROR {path}: it was changed by somebody else than the session"
        ]
        path.unlink()
        (told,) = altered([(one, here)], tmp_path)
        assert told == f"ERROR {path}: it cannot be read any more: No such file or directory"

    def test_a_log_that_was_edited_since(self, tmp_path: Path) -> None:
        log = ChainedLog(tmp_path / "events.jsonl")
        log.write("run_begin")
        one, here = made(tmp_path, "one", log=log.seal)
        log.write("round")
        (tmp_path / "events.jsonl").rename(here / "events.jsonl")
        (told,) = altered([(one, here)], tmp_path)
        assert (
            "events.jsonl: it was changed since the record was made: events.jsonl has 2 events, 1 were written" in told
        )

    def test_a_pipe_in_place_of_a_record_is_told_and_not_waited_for(self, tmp_path: Path) -> None:
        one, here = made(tmp_path, "one")
        (here / "record.json").unlink()
        os.mkfifo(here / "record.json")
        (told,) = altered([(one, here)], tmp_path)
        assert str(here / "record.json") in told

    def test_a_folder_whose_name_is_no_text_is_told_all_the_same(self, tmp_path: Path) -> None:
        laid = tmp_path / "inference" / os.fsdecode(b"\xff")
        laid.mkdir(parents=True)
        (laid / "record.json").touch()
        (told,) = altered([], tmp_path)
        assert told.encode() and "somebody else put it there" in told
        write_manifest(tmp_path, [told])

    @pytest.mark.parametrize("place", ["inference/two", "training/one/1x1"])
    def test_a_record_that_was_laid_there(self, tmp_path: Path, place: str) -> None:
        one, here = made(tmp_path, "one")
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "record.json").write_text(one.text())
        (told,) = altered([(one, here)], tmp_path)
        assert told.startswith(f"ERROR {tmp_path / place}/record.json: it is not the record of a case of this session")


def test_what_workers_were_asked_for_is_known_though_it_did_not_run() -> None:
    config: Any = SimpleNamespace(stash={})
    tests = [["suites/inference/test_a.py::TestA::test_b", "inference/a"]]
    report: Any = SimpleNamespace(**{WANTED: {"tests": tests, "selection": None}})
    _Controller(config).pytest_runtest_logreport(report)
    (asked,) = asked_of(config)
    assert (asked.run, asked.address) == ("inference/a", ("suites.inference.test_a.TestA", "test_b"))
