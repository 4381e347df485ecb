"""A log that others' code dictates: what was written down it can neither change nor take back."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import threading
import time
from pathlib import Path

from proofmark.process.output.last_words import wait_for_last_words

MOST = 1 << 30
"""Bytes of such a log."""

LONGEST = 8 << 20
"""Bytes that wait for the end of their line; what is longer is cut, and is no event."""


PACE, BURST = 2 << 20, 4 << 20
"""Bytes a second that are written down for as long as anybody dictates, and how many at once. Whoever says more waits:
who reads along by the clock must not be kept busy."""


class Dictation(threading.Thread):
    """Adds what is written to `descriptor` to a file, line by line, until nobody holds it any more.

    Several may share a file: lines stay whole.

    Args:
        path: the file's.
        most: bytes that are taken; whoever reads the log may hold all that it says.

    Attributes:
        failure: why no more is written down; whoever writes then finds the descriptor closed.
    """

    def __init__(self, path: Path, most: int | None = None) -> None:
        """Start at once.

        Raises:
            OSError: the file can't be made.
        """
        super().__init__(daemon=True)
        self._path, self._file = path, path.open("ab", buffering=0)
        self._read, self.descriptor = os.pipe()
        self._open, self._left = True, MOST if most is None else most
        self._lately, self._at = 0.0, time.monotonic()
        self._written = threading.Event()
        self._written.set()
        self.failure: OSError | None = None
        self.start()

    def run(self) -> None:
        """Read to the end."""
        waiting = bytearray()
        with self._file, contextlib.closing(io.FileIO(self._read)) as source:
            try:
                while chunk := self._next(source):
                    waiting += chunk
                    if b"\n" in chunk or len(waiting) > LONGEST:
                        whole = waiting.rfind(b"\n") + 1 or len(waiting)
                        self._write(waiting[:whole])
                        del waiting[:whole]
                    self._written.set()
                    self._keep_pace(len(chunk))
                self._write(waiting)  # a torn line: its writer died
            except OSError as error:
                self.failure = OSError(error.errno, error.strerror, str(self._path))

    def _next(self, source: io.FileIO) -> bytes:
        said = select.poll()
        said.register(source, select.POLLIN)
        said.poll()
        self._written.clear()  # before it leaves the pipe, where `holds_all` looks first
        return source.read(65536)

    def holds_all(self) -> bool:
        """Whether all lines that were said before this call are in the file, or none will be any more.

        Where this process stood still, whoever reads the file may be the first of its threads to go on.
        """
        if not self.is_alive():
            return True
        said = select.poll()
        said.register(self._read, select.POLLIN)
        return not any(events & select.POLLIN for _, events in said.poll(0)) and self._written.is_set()

    def _keep_pace(self, said: int) -> None:
        now = time.monotonic()
        self._lately = max(0.0, self._lately - (now - self._at) * PACE) + said
        self._at = now
        if self._lately > BURST and self._open:
            time.sleep((self._lately - BURST) / PACE)

    def finish(self) -> bool:
        """Wait until all is in the file; a writer that nobody could end is left behind after five seconds.

        Returns whether that was the first time, and something is not in it.
        """
        first, self._open = self._open, False
        if first:
            os.close(self.descriptor)
            wait_for_last_words(self)
        return first and self.failure is not None

    def _write(self, lines: bytearray) -> None:
        self._left -= len(lines)
        if self._left < 0:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(self._path))
        if self._file.write(lines) != len(lines):  # a disk that fills up takes a part, without a complaint
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
