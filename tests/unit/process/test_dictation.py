"""Logs that others' code dictates."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from proofmark.process.output import dictation
from proofmark.process.output.dictation import Dictation
from tests.waiting import PATIENCE, until


def test_lines_of_several_stay_whole(tmp_path: Path) -> None:
    path, line = tmp_path / "log", b"x" * 99_999 + b"\n"
    both = [Dictation(path) for _ in range(2)]
    writers = [threading.Thread(target=os.write, args=(each.descriptor, line * 20)) for each in both]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert not any(each.finish() for each in both)
    assert path.read_bytes() == line * 40


def test_it_holds_all_once_what_was_said_is_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, write = threading.Event(), Dictation._write

    def late(self: Dictation, lines: bytearray) -> None:
        assert goes_on.wait(PATIENCE)
        write(self, lines)

    monkeypatch.setattr(Dictation, "_write", late)
    taken = Dictation(tmp_path / "log")
    assert taken.holds_all()
    for said in (b"one\n", b"two\n"):  # the first leaves the pipe, the second stays there
        os.write(taken.descriptor, said)
        assert not taken.holds_all()
    goes_on.set()
    until(taken.holds_all, "its log")
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"
    os.write(taken.descriptor, b"half of")
    until(taken.holds_all, "its log")
    assert not taken.finish() and taken.holds_all()


def test_a_torn_line_is_kept_and_a_second_end_does_nothing(tmp_path: Path) -> None:
    taken = Dictation(tmp_path / "log")
    os.write(taken.descriptor, b"one\ntw")
    assert not taken.finish() and not taken.finish()
    assert (tmp_path / "log").read_bytes() == b"one\ntw"


def test_what_has_no_room_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictation, "MOST", 5)
    taken = Dictation(tmp_path / "log")
    os.write(taken.descriptor, b"one\n")
    os.write(taken.descriptor, b"two\n")
    taken.join()
    with pytest.raises(BrokenPipeError):
        os.write(taken.descriptor, b"three\n")
    assert taken.finish() and not taken.finish()
    assert "File too large" in str(taken.failure) and str(tmp_path / "log") in str(taken.failure)


def test_a_line_without_end_fills_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictation, "LONGEST", 10)
    taken = Dictation(tmp_path / "log")
    os.write(taken.descriptor, b"y" * 1000)
    assert not taken.finish() and (tmp_path / "log").stat().st_size == 1000


def test_who_says_very_much_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    clock = SimpleNamespace(sleep=slept.append, monotonic=lambda: 0.0)  # however long it really takes
    monkeypatch.setattr(dictation, "time", clock)
    taken = Dictation(tmp_path / "log")
    os.write(taken.descriptor, b"few words\n")
    for _ in range(160):
        os.write(taken.descriptor, b"x" * 65535 + b"\n")
    assert not taken.finish()
    assert sum(slept) > 0 and (tmp_path / "log").stat().st_size == 10 + 160 * 65536, "nothing is lost"
