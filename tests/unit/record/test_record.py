"""The record on disk: whole or not at all, and nothing else is read as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from proofmark.errors import UsageError
from proofmark.inference.outcome.record import RunRecord
from proofmark.record.parts import Verdict, VerdictKind
from tests.unit.records import accuracy, record


def test_comes_back_as_it_was(tmp_path: Path) -> None:
    made = record(verdict=Verdict(kind=VerdictKind.PASS), config={"a": None, "ü": [1, 2.5, {"b": True}]})
    made.save(tmp_path / "record.json")
    assert RunRecord.load(tmp_path / "record.json") == made
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_a_write_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.json"
    record().save(path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        record(case="other").save(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda raw: raw | {"schema_version": 1}, "schema version 1"),
        (lambda raw: {k: v for k, v in raw.items() if k != "schema_version"}, "not a run record: it has no schema"),
        (lambda raw: raw | {"colour": "red"}, "not a run record"),
        (lambda raw: {k: v for k, v in raw.items() if k != "accuracy"}, "not a run record"),
        (lambda raw: [raw], "not a run record: it has no schema"),
        (lambda raw: raw | {"seconds": "NaN"}, "seconds: "),
        (lambda raw: raw | {"seconds": float("nan")}, "NaN is not a finite number"),
        (lambda raw: raw | {"seconds": 10**30}, "larger than 64 bits"),
        (lambda raw: raw | {"schema_version": ["x" * 1000] * 1000}, "schema version ['xx"),
        (lambda raw: raw | {"\x1b[31m": 1}, r"\x1b[31m: Extra inputs"),
    ],
)
def test_refused(tmp_path: Path, change: Any, expected: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(json.dumps(change(record().model_dump(mode="json"))))
    with pytest.raises(UsageError, match="record.json") as caught:
        RunRecord.load(path)
    assert expected in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b'{"a": 1e999}'])
def test_unreadable(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="not a run record"):
        RunRecord.load(path)


def test_no_link_is_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in ("record.json", "record.json.tmp"):
        (tmp_path / name).symlink_to(victim)
    record().save(tmp_path / "record.json")
    assert victim.read_text() == "mine"
    assert RunRecord.load(tmp_path / "record.json") == record() and not (tmp_path / "record.json").is_symlink()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_a_number_is_no_figure(value: float) -> None:
    with pytest.raises(ValidationError):
        accuracy(engine=value)


def test_ranked_by_the_engine_where_there_is_a_compiler() -> None:
    made = record()
    assert made.measured() is made.engine
    assert record(compiler=None).measured() is not None
    assert record(engine=None).measured() is None
