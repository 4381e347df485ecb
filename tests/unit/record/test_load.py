"""Records of any suite and of two schemas are read back, and shown."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proofmark import __main__ as program
from proofmark.errors import UsageError
from proofmark.inference.outcome.record import RunRecord
from proofmark.record.envelope import CaseRecord
from proofmark.record.load import load_record
from proofmark.training.outcome.record import TrainingRecord
from reports.junit import properties
from reports.terminal import summary_lines
from tests.suites_there import SUITES, page_of

RECORDS = Path(__file__).parents[2] / "records"
"""Written by the last commit of schema 2."""

OLD = {"inference": RunRecord, "training": TrainingRecord}


def changed(folder: Path, written: str, /, **changes: Any) -> Path:
    """A record of schema 2 with other contents."""
    raw = json.loads((RECORDS / f"{written}_schema_2.json").read_text(encoding="utf-8"))
    path = folder / "record.json"
    path.write_text(json.dumps({**raw, **changes}), encoding="utf-8")
    return path


@pytest.mark.parametrize("suite, kind", OLD.items())
def test_a_record_of_the_schema_before_is_read_and_shown(tmp_path: Path, suite: str, kind: type[CaseRecord]) -> None:
    record = load_record(RECORDS / f"{suite}_schema_2.json", SUITES.get)
    assert type(record) is kind and record.verdict is not None and record.verdict.kind == "PASS"
    assert record.figures[0].value is not None
    lines = "\n".join(summary_lines([record], suites=SUITES))
    speed = {"inference": "415.4 ± 2.9 images/s (p_inference_core)", "training": "10.00 points/s"}[suite]
    assert speed in lines and "VERDICT PASS" in lines
    assert "<svg" in page_of([record]) and dict(properties(record))["verdict"] == "PASS"
    record.save(tmp_path / "record.json")
    assert json.loads((tmp_path / "record.json").read_text())["schema_version"] == 3
    assert load_record(tmp_path / "record.json", SUITES.get) == record


def judged_again(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    return program.main(["--judge", str(path)]), capsys.readouterr().out


@pytest.mark.parametrize("suite", OLD)
def test_a_record_of_the_schema_before_was_judged_by_fewer_checks_and_is_not_wrong(
    tmp_path: Path, suite: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(RECORDS.parents[1])
    code, output = judged_again(RECORDS / f"{suite}_schema_2.json", capsys)
    assert code == 17 and output.startswith("ERROR") and "WRONG" not in output
    fewer = "by fewer checks than there are now, of schema 2; only a new run can pass those"
    assert f"the record says PASS, {fewer}" in output
    session = tmp_path / "session"
    (run := session / load_record(RECORDS / f"{suite}_schema_2.json", SUITES.get).run_name).mkdir(parents=True)
    shutil.copy(RECORDS / f"{suite}_schema_2.json", run / "record.json")
    assert program.main(["--verify", str(session)]) == 17
    output = capsys.readouterr().out
    assert f"its verdict is PASS, {fewer}" in output and "its figures give" not in output
    raw = json.loads((RECORDS / f"{suite}_schema_2.json").read_text(encoding="utf-8"))
    code, output = judged_again(
        changed(tmp_path, suite, config={**raw["config"], "repeat": 99, "target": 0.9999}), capsys
    )
    if suite == "inference":  # of the other no figure is held to its configuration
        assert code == 17 and "WRONG the record says PASS" in output and "fewer checks" not in output
    load_record(RECORDS / f"{suite}_schema_2.json", SUITES.get).save(tmp_path / "record.json")
    code, output = judged_again(tmp_path / "record.json", capsys)
    assert code == 17 and "WRONG the record says PASS" in output, "of today's schema there is no such excuse"


@pytest.mark.parametrize("suite", OLD)
def test_a_record_of_no_installed_suite_is_its_envelope_and_figures(tmp_path: Path, suite: str) -> None:
    known = load_record(RECORDS / f"{suite}_schema_2.json", SUITES.get)
    known.model_copy(update={"suite": "elsewhere"}).save(tmp_path / "record.json")
    record = load_record(tmp_path / "record.json", SUITES.get)
    assert type(record) is CaseRecord and record.figures == known.figures
    lines = "\n".join(summary_lines([record], suites=SUITES))
    assert f"-- elsewhere/{record.case}" in lines and "MFU" in lines
    assert f"elsewhere/<wbr>{record.case}" in page_of([record])
    old = load_record(changed(tmp_path, suite, suite="elsewhere"), SUITES.get)
    assert old.figures == () and "VERDICT PASS" in summary_lines([old])


@pytest.mark.parametrize("version", [None, 0, 1, 4, "2", True, [2], {"a": 1}])
def test_another_schema_is_one_line(tmp_path: Path, version: Any) -> None:
    path = changed(tmp_path, "inference", schema_version=version)
    with pytest.raises(UsageError, match=r"record.json: schema version .*, this Proofmark reads 2 and 3") as caught:
        load_record(path, SUITES.get)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"\xff", b"NaN", b'"x"', b"null", b'{"schema_version": 3}', b'{"schema_version": 2}']
)
def test_what_is_no_record_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"record\.json: ") as caught:
        load_record(path, SUITES.get)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suite", [None, 7, "", ["inference"]])
def test_a_suite_that_is_no_name_is_one_line(tmp_path: Path, suite: Any) -> None:
    path = changed(tmp_path, "inference", suite=suite)
    if suite == "":
        assert load_record(path, SUITES.get).suite == ""
    else:
        with pytest.raises(UsageError, match="not a run record: suite: "):
            load_record(path, SUITES.get)


def test_a_detail_that_does_not_fit_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a run record: steps: "):
        load_record(changed(tmp_path, "inference", steps=[]), SUITES.get)


@pytest.mark.parametrize(
    "lay, expected",
    [
        (os.mkfifo, "it is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "it is not a regular file"),
        (Path.mkdir, "Is a directory"),
    ],
)
def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path, lay: Callable[[Path], None], expected: str) -> None:
    lay(tmp_path / "record.json")
    with pytest.raises(UsageError, match=rf"record\.json: (not a run record: |cannot be read: ).*{expected}"):
        load_record(tmp_path / "record.json", SUITES.get)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"record\.json: cannot be read: No such file or directory"):
        load_record(tmp_path / "record.json", SUITES.get)
