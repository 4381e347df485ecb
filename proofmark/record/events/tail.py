"""Following a file of lines that is being written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from proofmark.record.events.log import LONGEST


class Tail:
    """Yields each line once, as it comes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0

    @property
    def position(self) -> int:
        """In the file, behind the line that was yielded last."""
        return self._position

    def lines(self) -> Iterator[bytes]:
        """Whole lines written between the last call and this one; of one that is too long, pieces, which no reader
        takes. What is written meanwhile is the next call's: whoever writes fast keeps no reader in here."""
        if not self._path.exists():
            return
        with self._path.open("rb") as stream:
            end = os.fstat(stream.fileno()).st_size
            stream.seek(self._position)
            while self._position < end and (line := stream.readline(LONGEST)):
                if len(line) < LONGEST and not line.endswith(b"\n"):
                    return
                self._position += len(line)
                yield line
