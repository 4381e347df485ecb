"""A record's many parts in a file beside it: read back as they were, or refused in a line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from proofmark.automl.outcome.record import TRIALS, AutoMLRecord
from proofmark.errors import UsageError
from proofmark.record import beside
from tests.automl.automl_records import epoch, record, trial


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("proofmark.automl.outcome.record.MOST", 3)
    path = tmp_path / "record.json"
    record(*map(trial, range(5))).save(path)
    return path


def file_of(saved: Path) -> Path:
    (path,) = saved.parent.glob(f"{TRIALS}.*.jsonl")
    return path


def test_a_record_of_many_trials_is_read_back_whole(saved: Path) -> None:
    text = saved.read_text(encoding="utf-8")
    assert '"trials": []' in text and len(file_of(saved).read_text(encoding="utf-8").splitlines()) == 5
    whole = AutoMLRecord.load(saved)
    assert whole == record(*map(trial, range(5))) and whole.text() == text


def test_a_record_of_few_trials_with_many_evaluations_is_read_back_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is no larger than may be read; and no trial is too long of as many epochs as a case may ask for."""
    monkeypatch.setattr("proofmark.automl.outcome.record.ROOM", 1 << 20)
    monkeypatch.setattr("proofmark.plain_json.LARGEST", 2 << 20)
    path, epochs = tmp_path / "record.json", tuple(epoch(1e6 / 7 + number / 3, 1281167) for number in range(10_000))
    long = record(*(trial(number, epochs=epochs) for number in range(3)))
    long.save(path)
    assert AutoMLRecord.load(path) == long
    assert len(file_of(path).read_text(encoding="utf-8").splitlines()) == 3


def test_a_record_of_few_trials_has_them_all(saved: Path) -> None:
    few = saved.parent / "few" / "record.json"
    few.parent.mkdir()
    record(trial(0)).save(few)
    assert [path.name for path in few.parent.iterdir()] == [few.name]
    assert AutoMLRecord.load(few) == record(trial(0))


def link(path: Path) -> None:
    path.rename(path.with_name("away"))
    path.symlink_to("away")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def edited(old: str, new: str) -> Callable[[Path], None]:
    return lambda path: (
        path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8") and None
    )


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (Path.unlink, "No such file"),
        (link, "symbolic link"),
        (pipe, "is not a regular file"),
        (edited('"accuracy":0.9', '"accuracy":0.8'), "is not the file that its record was saved with"),
        (lambda path: os.truncate(path, 40), "Invalid|EOF|Unterminated|Expecting"),
        (lambda path: os.truncate(path, 0), "is not the file that its record was saved with"),
        (lambda path: path.open("a").write("{}\n"), "has more than the 5 lines that its record says"),
        (edited('"number":0', '"number":"none"'), "number: Input should be a valid integer"),
        (edited('"number":0', '"strange":0'), "number: Field required"),
        (lambda path: path.write_bytes(b"\xff\n"), "can't decode byte"),
        (lambda path: path.write_text("[" * 100_000 + "\n"), "recursion|nested"),
    ],
)
def test_another_file_than_was_saved_is_refused(saved: Path, damage: Callable[[Path], object], reason: str) -> None:
    damage(file_of(saved))
    with pytest.raises(UsageError, match=reason) as refused:
        AutoMLRecord.load(saved)
    assert f"{TRIALS}." in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ("LONGEST", r"line 1 would have \d+ bytes, at most 100 are read"),
        ("LARGEST", "larger than 0 MiB from line 1"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(
    saved: Path, monkeypatch: pytest.MonkeyPatch, bound: str, reason: str
) -> None:
    """The record that was there stays, with all that is beside it."""
    before = {path.name: path.read_bytes() for path in saved.parent.iterdir()}
    monkeypatch.setattr(beside, bound, 100)
    with pytest.raises(OSError, match=reason):
        record(*map(trial, range(6))).save(saved)
    assert {path.name: path.read_bytes() for path in saved.parent.iterdir()} == before


def test_a_file_that_is_too_large_is_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "LARGEST", 100)
    with pytest.raises(UsageError, match="is larger than"):
        AutoMLRecord.load(saved)


def test_a_record_that_is_not_written_to_its_end_leaves_the_one_before(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its process dies of, in between; the next one that is saved leaves nothing of either."""
    more = record(*map(trial, range(6)))
    with monkeypatch.context() as patched:
        patched.setattr("proofmark.automl.outcome.record.write_atomically", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            more.save(saved)
    assert AutoMLRecord.load(saved) == record(*map(trial, range(5)))
    others = saved.with_name("trials.jsonl"), saved.with_name("trials.of_somebody.jsonl")
    for path in others:
        path.touch()
    more.save(saved)
    assert AutoMLRecord.load(saved) == more and len(list(saved.parent.iterdir())) == 4
    record(trial(0)).save(saved)
    assert {path.name for path in saved.parent.iterdir()} == {saved.name, *(path.name for path in others)}
