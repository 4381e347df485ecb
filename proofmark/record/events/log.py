"""The event log: JSON lines, appended and flushed one by one, readable after any kind of end."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from proofmark.plain_json import open_plain, plain_text
from proofmark.process.wall_clock import now
from proofmark.record.events.types import Event, EventReader

__all__ = [
    "CORRUPT",
    "LOG_FILE",
    "NAMED",
    "Event",
    "EventLog",
    "Log",
    "lines",
    "read_events",
    "seconds_between",
    "stamped",
]

LOG_FILE: Final = "events.jsonl"
"""The log's name in the folder of its run."""


class Log(Protocol):
    """Where events go: into a file, or to the process that writes one."""

    def write(self, kind: str, /, **fields: Any) -> object:
        """Take one event."""


class EventLog:
    """Appends events to a file. `time` is seconds since the epoch, a label; durations are of `clock`, perf_counter_ns.

    One write per event, so that two processes may append to the same file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream = path.open("ab", buffering=0)

    def write(self, kind: str, /, **fields: Any) -> Event:
        """Append one event, and return it.

        Raises:
            OSError: the disk is full or gone.
            ValueError: a field is not plain JSON (NaN and infinity are not).
        """
        event = stamped(kind, fields)
        self.append(event)
        return event

    def append(self, event: Event) -> None:
        """Write a stamped event.

        Raises:
            OSError: the disk is full or gone.
            ValueError: a field is not plain JSON.
        """
        self._put((json.dumps(event, allow_nan=False, separators=(",", ":")) + "\n").encode())

    def _put(self, line: bytes) -> None:
        if self._stream.write(line) != len(line):  # a disk that fills up takes a part, without a complaint
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def stamped(kind: str, fields: Mapping[str, Any]) -> Event:
    """An event of this moment."""
    plain = {name: plain_text(value) for name, value in fields.items()}
    return {"event": kind, "time": now(), "clock": time.perf_counter_ns(), **plain}


CORRUPT = "corrupt_line"

NAMED = 8
"""Damaged lines that a record names; it counts all."""

LONGEST = 8 << 20
"""Bytes of a line. What is longer is read in pieces and is no event."""

_ANY = EventReader({})


def read_events(path: Path, reader: EventReader = _ANY) -> Iterator[Event]:
    """Yield the events of a log, line by line, each with the fields that `reader` knows its kind to have.

    Reads a log of any length in constant memory; pydantic's parser takes a quarter of the time of `json`.
    A torn last line (a writer that died) is left out; any other line that is no event is yielded as an event CORRUPT
    that names its file, its line and what is wrong with it, so that a damaged log can't pass for a whole one.
    """
    try:
        stream = open_plain(path)
    except FileNotFoundError:
        return
    except ValueError as error:
        yield {"event": CORRUPT, "what": f"{path.name}: {error}"}
        return
    with stream:
        for number, line in enumerate(lines(stream), 1):
            try:
                yield reader.read(line)
            except ValueError as error:
                if line.endswith(b"\n"):
                    yield {"event": CORRUPT, "what": f"{path.name}, line {number}: {error}"}


def lines(stream: BinaryIO, longest: int = LONGEST) -> Iterator[bytes]:
    """The lines of a file; an empty one in the place of one that is too long."""
    while line := stream.readline(longest):
        if len(line) < longest or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(longest)
        yield b"\n"


def seconds_between(first: Event, last: Event) -> float:
    """Seconds by the monotonic clock, which all processes of a machine share: 0 if `last` came first."""
    return float(max(0, last["clock"] - first["clock"])) / 1e9
