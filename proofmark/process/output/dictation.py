"""A log that others' code dictates: what was written down it can neither change nor take back."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import termios
import threading
import time
from array import array
from pathlib import Path

from proofmark.process.output.last_words import EVERY, wait_for_last_words

MOST = 1 << 30
"""Bytes of such a log."""

LONGEST = 8 << 20
"""Bytes that wait for the end of their line; what is longer is cut, and is no event."""

CHUNK = 1 << 16
"""Bytes that are read at a time."""

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
        os.set_blocking(self._read, False)
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._open, self._left = True, MOST if most is None else most
        self._lately, self._at = 0.0, time.monotonic()
        self._taking, self._waiting, self._taken = threading.Lock(), bytearray(), os.fstat(self._file.fileno()).st_size
        self._searched, self._over = 0, False
        self.failure: OSError | None = None
        self.start()

    def run(self) -> None:
        """Read to the end."""
        said, paced = select.poll(), self._taken
        for descriptor in (self._read, self._woken):
            said.register(descriptor, select.POLLIN)
        with self._file:
            try:
                while not self._over:
                    said.poll()
                    with contextlib.suppress(BlockingIOError):
                        os.eventfd_read(self._woken)
                    self._write(self._lines())
                    taken = self._taken
                    self._keep_pace(taken - paced)
                    paced = taken
                self._write(self._waiting)  # a torn line: its writer died
            except OSError as error:
                self.failure = OSError(error.errno, error.strerror, str(self._path))
            with self._taking:
                self._over = True
                os.close(self._read)
                os.close(self._woken)

    def take(self) -> int:
        """Take what lies in the pipe: the position in the file behind all that was said before this call.

        It is written down later, as soon as the disk lets it. What lies in the pipe could be taken back, or be joined
        by what was said since, before it is written down.
        """
        with self._taking:
            if not self._over and len(self._waiting) <= BURST:  # who says so much more is none to be fair to
                lies = array("i", [0])
                fcntl.ioctl(self._read, termios.FIONREAD, lies)
                if self._take(min(lies[0], BURST)):
                    os.eventfd_write(self._woken, 1)
            return self._taken

    def _take(self, most: int) -> int:
        """Take what is there, up to so many bytes; how many it was."""
        before = self._taken
        while self._taken - before < most:
            try:
                chunk = os.read(self._read, min(CHUNK, most - (self._taken - before)))
            except BlockingIOError:
                break
            if not chunk:
                self._over = True
                break
            self._waiting += chunk
            self._taken += len(chunk)
        return self._taken - before

    def _lines(self) -> bytearray:
        """What may be written down by now: whole lines, and what is too long to be one."""
        with self._taking:
            self._take(CHUNK)
            whole = self._waiting.rfind(b"\n", self._searched) + 1
            if not whole and len(self._waiting) > LONGEST:
                whole = len(self._waiting)
            lines = self._waiting[:whole]
            del self._waiting[:whole]
            self._searched = len(self._waiting)
            return lines

    def _keep_pace(self, said: int) -> None:
        now = time.monotonic()
        self._lately = max(0.0, self._lately - (now - self._at) * PACE) + said
        self._at = now
        left = (self._lately - BURST) / PACE
        while left > 0 and self._open:
            time.sleep(min(left, EVERY))
            left -= EVERY

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
