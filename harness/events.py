"""The event log: JSON lines, appended and flushed one by one, readable after any kind of end."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from harness.plain_json import plain_text
from harness.wall_clock import now

Event = dict[str, Any]


class EventLog:
    """Appends events to a file. `time` is seconds since the epoch, a label; durations are of `clock`, perf_counter_ns.

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
        fields = {name: plain_text(value) for name, value in fields.items()}
        event = {"event": kind, "time": now(), "clock": time.perf_counter_ns(), **fields}
        line = (json.dumps(event, allow_nan=False, separators=(",", ":")) + "\n").encode()
        if self._stream.write(line) != len(line):  # a disk that fills up takes a part, without a complaint
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


CORRUPT = "corrupt_line"


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a log, line by line.

    Reads a log of any length in constant memory; pydantic's parser takes a quarter of the time of `json`.
    A torn last line (a writer that died) is left out; any other line that is no event is yielded as an event CORRUPT,
    so that a damaged log can't pass for a whole one.
    """
    if not path.exists():
        return
    with path.open("rb") as stream:
        for line in stream:
            try:
                event = from_json(line)
            except ValueError:
                event = None
            if isinstance(event, dict) and "event" in event:
                yield event
            elif line.endswith(b"\n"):
                yield {"event": CORRUPT}


def seconds_between(first: Event, last: Event) -> float:
    """By the monotonic clock, which all processes of a machine share: nothing if `last` came first."""
    return float(max(0, last["clock"] - first["clock"])) / 1e9
