"""What is selected, and what --changed-since comes to in a session, without one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import execnet
import pytest

from fixtures import affected
from fixtures.affected import SELECTION, Selection, affects_nothing, selection_lines, unrecorded
from fixtures.cases import collection
from proofmark.affected.changes import Change, Changes
from proofmark.affected.reach import Reach
from proofmark.affected.rooms import Rooms
from proofmark.affected.whose import whose
from reports.junit_file import RUN

FILES = (Change("vendors/acme/configs/training/net/A100x1x8.yaml"), Change("vendors/other", submodule=True))
ROOMS = Rooms(vendor_may_touch=["vendors/{vendor}/"])


def selection() -> Selection:
    return Selection(Changes("main", "0" * 40, FILES, 1), ROOMS, whose(FILES, ROOMS))


def config(found: Selection | None) -> Any:
    option = SimpleNamespace(collectonly=False, setupplan=False)
    return SimpleNamespace(stash={SELECTION: found} if found else {}, option=option)


GBK = "vendors/acme/\udcc4\udce3.txt"
"""A name that is not UTF-8, as files have it that were unpacked from an archive of another system."""


def sent(plain: Any) -> Any:
    """As between the controller and a worker."""
    return execnet.loads(execnet.dumps(plain))


def test_a_worker_has_what_the_controller_found() -> None:
    files = (*FILES, Change(GBK))
    found = Selection(Changes("main", "0" * 40, files, 1, (GBK,)), ROOMS, whose(files, ROOMS))
    node: Any = SimpleNamespace(config=config(found), workerinput={})
    affected.pytest_configure_node(node)
    assert affected._from_worker_input(sent(node.workerinput[affected.WORKERS])) == found


def test_the_controller_learns_what_a_worker_left_out() -> None:
    decided, learned = selection(), selection()
    decided.kept["training/net/A100x1x8"] = Reach(GBK, "training", "net", "A100x1x8", "acme")
    decided.left_out["training/net/1x1"] = "so"
    learned.learn(sent(decided.plain()))
    assert learned == decided


def report(outcome: Literal["failed", "skipped"], longrepr: Any) -> pytest.TestReport:
    """Of a test of the run whose own file has changed."""
    properties = [(RUN, "training/net/A100x1x8")]
    return pytest.TestReport("test", ("f", 1, "test"), {}, outcome, longrepr, "call", user_properties=properties)


@pytest.mark.parametrize(
    "scale, skipped, lacking",
    [
        ("A100x1x8", "is for another chip", "is for another chip"),
        (None, "needs 8 devices", None),
        (None, None, "the change affects it, and this session has made no record of it"),
    ],
)
def test_an_affected_run_lacks_a_record_unless_this_machine_cannot_have_it(
    scale: str | None, skipped: str | None, lacking: str | None
) -> None:
    found = selection()
    found.kept["training/net/A100x1x8"] = Reach("f", "training", "net", scale, "acme")
    if skipped:
        affected._Skips(found).pytest_runtest_logreport(report("skipped", ("f", 1, f"Skipped: {skipped}")))
    expected = [("training/net/A100x1x8", lacking)] if lacking else []
    assert unrecorded(config(found), set()) == expected
    assert unrecorded(config(found), {"training/net/A100x1x8"}) == []
    looking = config(found)
    looking.option.preflight_only = True
    assert unrecorded(looking, set()) == []


def test_an_affected_run_that_failed_before_it_had_a_record_is_not_one_that_its_suite_skipped() -> None:
    """After the test that failed the others are skipped."""
    found = selection()
    found.kept["training/net/A100x1x8"] = Reach("f", "training", "net", None, "acme")
    skips = affected._Skips(found)
    skips.pytest_runtest_logreport(report("failed", "another session holds its device"))
    skips.pytest_runtest_logreport(report("skipped", ("f", 1, "Skipped: test_a says why training/net/A100x1x8 failed")))
    ((run, why),) = unrecorded(config(found), set())
    assert run == "training/net/A100x1x8" and "no record of it" in why


def test_nothing_affected_takes_runs_that_were_selected(tmp_path: Path) -> None:
    (tmp_path / "vendors/other").mkdir(parents=True)
    (tmp_path / "vendors/other/__init__.py").touch()
    found = selection()
    assert not affects_nothing(config(None)) and not affects_nothing(config(found))
    found.left_out["training/net/1x1"] = "so"
    assert affects_nothing(config(found))
    found.left_out["training/net/1x2"] = "so"
    assert list(selection_lines(found, "acme", tmp_path)) == [
        "LEFT OUT training/net/1x1, training/net/1x2: so",
        "LEFT OUT vendor other: it has changed too; this session is of acme, --vendor other runs it",
        "NOTHING AFFECTED: none of the 2 runs that were selected depends on the 2 files that differ from main: "
        "vendors/acme/configs/training/net/A100x1x8.yaml, vendors/other",
    ]


def test_an_untracked_file_that_reaches_everything_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "vendors/other").mkdir(parents=True)
    (tmp_path / "vendors/other/__init__.py").touch()
    files = (*FILES, Change("notes.log"), Change("vendors/acme/new.py"))
    untracked = ("notes.log", "vendors/acme/new.py")
    found = Selection(Changes("main", "0" * 40, files, 2, untracked), ROOMS, whose(files, ROOMS))
    found.kept["training/net/1x1"] = Reach("notes.log")
    todo = "add to .gitignore or remove what is not part of the change"
    stray = f"; not tracked by git, and reaching everything: notes.log; {todo}"
    lines = list(selection_lines(found, "cpu", tmp_path))
    assert lines[0] == f"AFFECTED training/net/1x1: notes.log (everything){stray}"
    assert lines[-1].startswith("LEFT OUT vendor other: it has changed too") and lines[-1].endswith(f"runs it{stray}")


def test_of_a_vendor_whose_files_are_deleted_nothing_can_be_run(tmp_path: Path) -> None:
    compiled = tmp_path / "vendors/other/__pycache__/__init__.cpython-311.pyc"
    compiled.parent.mkdir(parents=True)
    compiled.touch()
    lines = list(selection_lines(selection(), "acme", tmp_path))
    assert lines == ["LEFT OUT vendor other: its files are deleted: nothing of it is left to run"]
    assert affected._vendor_of(selection(), tmp_path) is None


def test_a_rule_that_does_not_say_what_a_vendor_may_touch_is_not_said_to_be_missing() -> None:
    rooms = Rooms(affect_no_case=["docs/"])
    lines = affected.header(Selection(selection().changes, rooms, whose(FILES, rooms)))
    assert lines[2].startswith("main has no vendor_may_touch in ci/rooms.yaml: ") and len(lines) == 3
    assert len(affected.header(selection())) == 2


def test_one_run_and_one_file_are_one(tmp_path: Path) -> None:
    files = (Change("docs/page.md"),)
    found = Selection(Changes("main", "0" * 40, files, 1), ROOMS, whose(files, ROOMS))
    found.left_out["training/net/1x1"] = "so"
    assert list(selection_lines(found, "acme", tmp_path))[-1] == (
        "NOTHING AFFECTED: the selected run does not depend on the 1 file that differs from main: docs/page.md"
    )


def test_tests_of_a_run_follow_one_another_however_they_were_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "run_of", lambda item: item.nodeid[0] if item.nodeid < "x" else "")
    items: list[Any] = [SimpleNamespace(nodeid=nodeid) for nodeid in ("a1", "x1", "b1", "a2", "x2", "b2", "a0")]
    collection.keep_together(items)
    assert [item.nodeid for item in items] == ["a1", "a2", "a0", "x1", "b1", "b2", "x2"]
