"""The lines of a folder's text files, left in the files."""

from __future__ import annotations

import hashlib
import io
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proofmark.errors import StepError
from proofmark.record.parts import Identity

AT_ONCE = 1 << 20
"""Bytes of a file that are read at once."""


class Lines:
    """The lines of a folder's .txt files that are not blank, in the order of the files' names; a line feed ends a line.

    Of each only its place is held, 8 bytes: the text of a Wikipedia is larger than what a host has for each rank.

    Raises:
        StepError: no text files, none with text in it, or one that is not UTF-8.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise StepError(f"The data directory {root} cannot be read; expected a folder with .txt files.")
        self._files = sorted(root.glob("*.txt"))
        self._states: list[tuple[int, int]] = []
        """Size and time of the last change of each file when it was looked through."""
        if not self._files:
            raise StepError(f"The data directory {root} holds no .txt files.")
        self._starts: array[int] = array("q")
        """Where in its file each line begins; after a file's last one, where the file ends."""
        self._first: list[int] = []
        """The place in `_starts` of each file's first line."""
        digest = hashlib.sha256()
        for path in self._files:
            self._first.append(len(self._starts))
            self._states.append(_state(path))
            content = hashlib.sha256()
            self._starts.extend(_starts(path, content))
            size = self._starts[-1]
            digest.update(f"{path.name}\0{size}\0{content.hexdigest()}\n".encode())
        self.identity = Identity(name=root.name, sha256=digest.hexdigest(), items=len(self), origin=str(root))

    def __len__(self) -> int:
        return len(self._starts) - len(self._files)

    def __getitem__(self, index: int) -> str:
        """A line without the white space around it.

        Raises:
            StepError: its file is not what it was.
        """
        if not 0 <= index < len(self):
            raise IndexError(index)
        number = bisect_right(range(len(self._files)), index, key=lambda n: self._first[n] - n) - 1
        start, end = self._starts[index + number : index + number + 2]
        path = self._files[number]
        try:
            with path.open("rb") as stream:
                unchanged = _state(stream.fileno()) == self._states[number]
                stream.seek(start)
                line = stream.read(end - start)
        except OSError as error:
            raise _unreadable(path, error) from error
        if not unchanged:
            raise StepError(f"The text file {path} was changed while it was in use.")
        return line.decode("utf-8").strip()


def _state(file: Path | int) -> tuple[int, int]:
    try:
        found = os.stat(file)
    except OSError as error:
        raise StepError(f"A text file cannot be read: {error}.") from error
    return found.st_size, found.st_mtime_ns


class _Hashed(io.FileIO):
    """A file whose bytes are hashed as they are read: a second time a large one would come from the disk again."""

    def __init__(self, path: Path, digest: hashlib._Hash) -> None:
        super().__init__(path)
        self._digest = digest

    def readinto(self, buffer: Any, /) -> int:
        """What a buffered reader calls."""
        count = super().readinto(buffer)
        self._digest.update(memoryview(buffer)[:count])
        return count


def _starts(path: Path, digest: hashlib._Hash) -> Iterator[int]:
    """Where each line begins that is not blank, then the file's size; all of it goes into `digest`."""
    place, found = 0, False
    try:
        with io.BufferedReader(_Hashed(path, digest), AT_ONCE) as stream:
            for line in stream:
                if line.decode("utf-8").strip():
                    found = True
                    yield place
                place += len(line)
    except UnicodeDecodeError as error:
        what = f"The text file {path} is not UTF-8: byte {place + error.start} cannot be decoded."
        raise StepError(what) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    if not found:
        raise StepError(f"The text file {path} holds no text.")
    yield place


def _unreadable(path: Path, error: OSError) -> StepError:
    return StepError(f"The text file {path} cannot be read: {error.strerror}.")
