"""A log that cannot fill the disk, whatever is printed: its beginning and its end are kept."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from pathlib import Path

from proofmark.process.output.last_words import wait_for_last_words

HEAD = 8 * 2**20
"""Bytes from the beginning that are kept, written as they come."""

TAIL = 8 * 2**20
"""Bytes from the end that are kept, in memory until the writers are gone."""


class CappedLog(threading.Thread):
    """Moves what is written to `descriptor` into a file, until nobody holds it any more.

    Writers never wait for a disk, and memory holds no more than 2 * TAIL.
    """

    def __init__(self, path: Path) -> None:
        """Start at once.

        Raises:
            OSError: the file can't be made.
        """
        super().__init__(daemon=True)
        self._path, self._file = path, path.open("ab", buffering=0)
        self._read, self.descriptor = os.pipe()
        self._tail = bytearray()
        self._left_out = 0
        self._lock = threading.Lock()
        self.received = 0
        self.start()

    def run(self) -> None:
        """Read to the end, even where nothing can be written."""
        room = HEAD
        with self._file, contextlib.closing(os.fdopen(self._read, "rb", buffering=0)) as source:
            while chunk := source.read(65536):
                with self._lock:
                    self._write(chunk[:room])
                    self._keep(chunk[room:])
                    room = max(0, room - len(chunk))
                    self.received += len(chunk)
            self._keep(b"", most=TAIL)
            if self._left_out:
                self._write(f"\n[{self._left_out} bytes left out here: more than a log may have]\n".encode())
            self._write(self._tail)

    def since(self, position: int) -> bytes:
        """What came after `position` bytes were received, as far as it is kept, while writers are there.

        Raises:
            OSError: the file can't be read.
        """
        with self._lock:
            beyond = self.received - max(position, HEAD)
            return self._path.read_bytes()[position:HEAD] + (self._tail[-beyond:] if beyond > 0 else b"")

    def catch_up(self, within: float = 10.0) -> None:
        """Wait until all is received that was written before, while writers are there."""
        deadline, looks = time.monotonic() + within, select.poll()
        looks.register(self._read, select.POLLIN)
        empty = 0
        # what was read last is being kept at the first look
        while empty < 2 and self.is_alive() and time.monotonic() < deadline:
            empty = 0 if any(event & select.POLLIN for _, event in looks.poll(0)) else empty + 1  # a hang-up is no word
            time.sleep(0.02)

    def finish(self) -> None:
        """Wait until all is in the file; a writer that nobody could end is left behind after five seconds."""
        wait_for_last_words(self)

    def _write(self, chunk: bytes | bytearray) -> None:
        with contextlib.suppress(OSError):
            self._file.write(chunk)

    def _keep(self, chunk: bytes, most: int = 2 * TAIL) -> None:
        """Add to the tail; cut it when it has doubled, so that a byte is moved once at most."""
        self._tail += chunk
        if len(self._tail) > most:
            self._left_out += len(self._tail) - TAIL
            del self._tail[:-TAIL]
