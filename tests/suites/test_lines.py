"""Lines left in their files: which there are, and what is refused when a file changes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.errors import StepError
from suites.data.text.lines import Lines

TEXT = st.text(st.sampled_from("aé字\u3000 \t\r\n\u2028"), max_size=30)


@given(st.lists(TEXT, min_size=1, max_size=4), st.booleans())
def test_lines_are_those_of_the_files_in_order(texts: list[str], ended: bool) -> None:
    expected = [[line.strip() for line in text.split("\n") if line.strip()] for text in texts]
    with tempfile.TemporaryDirectory() as directory:
        for number, text in enumerate(texts):
            Path(directory, f"{number}.txt").write_bytes((text + "\n" * ended).encode())
        if not all(expected):
            with pytest.raises(StepError, match="holds no text"):
                Lines(Path(directory))
            return
        lines = Lines(Path(directory))
        flat = [line for each in expected for line in each]
        assert [lines[index] for index in range(len(lines))] == flat
        assert lines.identity.items == len(lines) == len(flat)
        for beyond in (-1, len(lines)):
            with pytest.raises(IndexError):
                lines[beyond]


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"", "was changed"),
        (b"zero\none\ntwo\n", "was changed"),
        (b"six\nten\n", "was changed"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_changes_is_named(tmp_path: Path, content: bytes | None, expected: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    os.utime(path, (0, 0))  # the clock of a file system may stand still for some milliseconds
    lines = Lines(tmp_path)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(StepError, match=rf"a\.txt {expected}"):
        lines[0]


@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_they_are_identified_as_records_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Over all bytes of each file, however it is read, and it is read once."""
    monkeypatch.setattr("suites.data.text.lines.AT_ONCE", at_once)
    digest, files = hashlib.sha256(), {"a.txt": "one\n\n字\r\n", "b.txt": "\ntwo"}
    for name, text in files.items():
        (tmp_path / name).write_bytes(content := text.encode())
        digest.update(f"{name}\0{len(content)}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert Lines(tmp_path).identity.sha256 == digest.hexdigest()


def test_a_byte_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\n\n" + "café".encode("latin-1"))
    with pytest.raises(StepError, match="byte 8 cannot be decoded"):
        Lines(tmp_path)
