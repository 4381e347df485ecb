"""Events chained by hash: each has the digest of the one before it, so that none is edited, added or left out unseen.

Whoever writes a whole chain anew is not found out by it, but by its seal: that is held by the process that writes, and
stands in the record.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from proofmark.plain_json import open_plain
from proofmark.record.events.log import NAMED, Event, EventLog, lines, stamped
from proofmark.record.parts import FIRST, Seal

LINK = "previous"
"""The field of an event with the digest of the one before."""

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
"""Made once: a log has many events."""


class ChainedLog(EventLog):
    """A log that one process writes, and whose seal it holds."""

    def __init__(self, path: Path, seal: Seal | None = None) -> None:
        """Begin one, or go on with what `seal` says is there already.

        Raises:
            OSError: it can't be written.
        """
        super().__init__(path)
        self.seal = seal or Seal()
        self._torn = False

    def write(self, kind: str, /, **fields: Any) -> Event:
        """Append one event after the last, or nothing of it.

        Raises:
            OSError: the disk is full or gone, or what it took of an earlier event could not be taken back.
            ValueError: a field is not plain JSON, or is the chain's own.
        """
        if self._torn:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(self.path))
        if LINK in fields:
            raise ValueError(f"{kind}: the field '{LINK}' is the chain's own")
        event = stamped(kind, {LINK: self.seal.head, **fields})
        seal = Seal(events=self.seal.events + 1, head=digest_of(event))
        before, size = self.seal, os.fstat(self._stream.fileno()).st_size
        try:
            self.append(event)
            self.seal = seal
        except BaseException:  # Ctrl-C too: a line that the seal doesn't know of would look like somebody else's
            self._take_back(before, size)
            raise
        return event

    def _take_back(self, seal: Seal, size: int) -> None:
        """The log as it was before an event. Where its file can't be, nothing more is written after it."""
        self.seal = seal
        try:
            os.ftruncate(self._stream.fileno(), size)
        except OSError:
            self._torn = True


def digest_of(event: Event) -> str:
    """SHA-256 of an event, however its line is written."""
    return hashlib.sha256(_CANONICAL.encode(event).encode()).hexdigest()


def changes(path: Path, seal: Seal) -> list[str]:
    """What shows that a log is not the one that was sealed: the first lines at fault, each in part of a sentence.

    Raises:
        OSError: it can't be read.
    """
    wrong, head, number = list[str](), FIRST, 0
    try:
        stream = open_plain(path)
    except FileNotFoundError:
        return [f"{path.name} is gone"]
    except ValueError as error:
        return [f"{path.name}: {error}"]
    with stream:
        for number, line in enumerate(lines(stream), 1):
            event = _event(line)
            if event is None or event.get(LINK) != head:
                wrong.append(f"{path.name}, line {number}, does not follow what was written before it")
            head = digest_of(event) if event is not None else head
    if number != seal.events:
        wrong.append(f"{path.name} has {number} events, {seal.events} were written")
    elif head != seal.head and not wrong:
        wrong.append(f"{path.name}, line {number}, is not what was written last")
    return wrong[:NAMED]


def _event(line: bytes) -> Event | None:
    """A line's event as it stands there; None if it is none."""
    try:
        event = from_json(line, allow_inf_nan=False)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
