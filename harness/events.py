"""The event log: JSON lines, appended and flushed one by one, readable after any kind of end."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]


class EventLog:
    """Appends events to a file. `time` is seconds since the epoch, `clock` perf_counter_ns.

    One write per event, so that two processes may append to the same file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream = path.open("ab", buffering=0)

    def write(self, kind: str, /, **fields: Any) -> None:
        """Append one event.

        Raises:
            OSError: the disk is full or gone.
            ValueError: a field is not plain JSON (NaN and infinity are not).
        """
        event = {"event": kind, "time": time.time(), "clock": time.perf_counter_ns(), **fields}
        line = (json.dumps(event, allow_nan=False, separators=(",", ":")) + "\n").encode()
        if self._stream.write(line) != len(line):  # a disk that fills up takes a part, without a complaint
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a log, line by line; a torn last line (a writer that died) is left out."""
    if not path.exists():
        return
    with path.open("rb") as stream:
        for line in stream:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and "event" in event:
                yield event
