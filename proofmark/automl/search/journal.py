"""A search's journal: all that is decided and all that came of it, one event a line, each chained to the one before.

The score is computed from it alone. One driver at a time writes to it; the lock goes with the process that holds it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proofmark.automl.outcome.event_types import JOURNAL_EVENTS
from proofmark.errors import UsageError, harmless
from proofmark.record.chain import LINK, ChainedLog, digest_of
from proofmark.record.events import CORRUPT, Event, read_events
from proofmark.record.parts import FIRST, Seal

FILE, LOCK = "journal.jsonl", "driver.lock"


class Journal:
    """A search's folder, held against other drivers, and the journal in it."""

    def __init__(self, folder: Path) -> None:
        """Take the folder, made if it is not there, and read what was written so far.

        A torn last line, of a driver that died while it wrote, is cut off: it was never acted on.

        Raises:
            UsageError: another driver has the folder, or its journal is damaged or was edited; one line.
            OSError: it can't be read or written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _hold(self._lock, folder)
            path = folder / FILE
            _cut_torn_line(path)
            self.events = list(read_journal(path))
            wrong = faults(self.events)
            if wrong:
                more = f" ({len(wrong) - 1} more)" if len(wrong) > 1 else ""
                raise UsageError(harmless(f"{path}: {wrong[0]}{more}: a search does not go on from it"))
            last = digest_of(self.events[-1]) if self.events else FIRST
            self._log = ChainedLog(path, Seal(events=len(self.events), head=last))
        except BaseException:
            os.close(self._lock)
            raise

    def write(self, kind: str, /, **fields: Any) -> Event:
        """Append one event, and return it.

        Raises:
            OSError: the disk is full or gone.
            ValueError: a field is not plain JSON.
        """
        event = self._log.write(kind, **fields)
        self.events.append(event)
        return event

    def close(self) -> None:
        """Let go of it."""
        self._log.close()
        os.close(self._lock)


def read_journal(path: Path) -> Iterator[Event]:
    """Its events, damaged ones as CORRUPT."""
    return read_events(path, JOURNAL_EVENTS)


def faults(events: Sequence[Event]) -> list[str]:
    """What shows that these are not the events as a driver wrote them: damage, a broken chain, time that runs back.

    Whoever writes a whole chain anew is not found out here: the record has the digest of the last event.
    """
    wrong, head, clock = [], FIRST, 0
    for number, event in enumerate(events, 1):
        if event["event"] == CORRUPT:
            wrong.append(f"event {number} is damaged: {event['what']}")
            continue
        if event.get(LINK) != head:
            wrong.append(f"event {number}, {event['event']}, does not follow the one before it: it was edited")
        if event["event"] == "driver_begin":
            clock = 0  # another machine's, or another boot's
        if event["clock"] < clock:
            wrong.append(f"event {number}, {event['event']}, is earlier than the one before it")
        head, clock = digest_of(event), event["clock"]
    return wrong


def _hold(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode("ascii", "replace").strip()
        who = f"process {holder}" if holder.isdecimal() else "another process"
        raise UsageError(f"{folder}: {who} is searching there; one driver at a time") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def _cut_torn_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("r+b") as stream:
        content = stream.read()
        whole = content.rfind(b"\n") + 1
        if whole != len(content):
            stream.truncate(whole)
