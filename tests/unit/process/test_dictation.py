"""Logs that others' code dictates."""

from __future__ import annotations

import fcntl
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


def test_all_that_was_said_can_be_taken_before_it_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its position is known, and nobody can take it back, while the disk stands still."""
    goes_on, write = threading.Event(), Dictation._write

    def late(self: Dictation, lines: bytearray) -> None:
        assert goes_on.wait(PATIENCE)
        write(self, lines)

    (tmp_path / "log").write_bytes(b"zero\n")
    monkeypatch.setattr(Dictation, "_write", late)
    taken = Dictation(tmp_path / "log")
    assert taken.take() == 5
    for said, position in ((b"one\n", 9), (b"half of ", 17), (b"a line\n" + b"x" * 50_000 + b"\n", 50_025)):
        os.write(taken.descriptor, said)
        assert taken.take() == position
    with open(
        f"/proc/self/fd/{taken.descriptor}",
        "rb",
        buffering=0,
        opener=lambda *_: os.open(f"/proc/self/fd/{taken.descriptor}", os.O_RDONLY | os.O_NONBLOCK),
    ) as thief:
        assert thief.read(1) is None
    assert (tmp_path / "log").read_bytes() == b"zero\n"
    goes_on.set()
    whole = b"zero\none\nhalf of a line\n" + b"x" * 50_000 + b"\n"
    until(lambda: (tmp_path / "log").read_bytes() == whole, "its log, though nothing more is said")
    os.write(taken.descriptor, b"torn")
    assert taken.take() == len(whole) + 4
    assert not taken.finish() and (tmp_path / "log").read_bytes() == whole + b"torn"
    assert taken.take() == len(whole) + 4, "it has ended"


def test_a_pipe_is_taken_whole_however_large_its_writer_makes_it(tmp_path: Path) -> None:
    taken = Dictation(tmp_path / "log")
    size = fcntl.fcntl(taken.descriptor, fcntl.F_SETPIPE_SZ, 1 << 20)
    os.write(taken.descriptor, b"x" * (size - 1) + b"\n")
    assert taken.take() == size
    assert not taken.finish() and (tmp_path / "log").stat().st_size == size


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
