"""A search's journal: every decision and every result, one event a line, each chained to the one before.

The score is computed from it alone. One driver at a time writes to it; the lock goes with the process that holds it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from proofmark.automl.logs.event_types import JOURNAL_EVENTS
from proofmark.errors import UsageError, harmless
from proofmark.process.identity import ProcessIdentity
from proofmark.record.events.log import CORRUPT, Event, read_events
from proofmark.record.integrity.chain import LINK, ChainedLog, digest_of
from proofmark.record.parts import FIRST, Seal

FILE, LOCK = "journal.jsonl", "driver.lock"

PIECE = 1 << 16
"""Bytes that are read at once in search of the last line's end."""


LINGER = 30.0
"""Seconds that a lock is waited for whose holder's process has ended."""


class Journal:
    """A search's folder, locked against other drivers, and the journal in it."""

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
            hold(self._lock, folder)
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
            self._path = path = folder / FILE
            cut_torn_line(path)
            chain = Chain()
            for event in self.events:
                chain.take(event)
            if wrong := chain.faults:
                more = f" ({len(wrong) - 1} more)" if len(wrong) > 1 else ""
                raise UsageError(harmless(f"{path}: {wrong[0]}{more}: a search cannot be resumed from it"))
            self._log = ChainedLog(path, Seal(events=chain.events, head=chain.head))
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def is_new(self) -> bool:
        """Whether nothing was written so far."""
        return self._log.seal.events == 0

    @property
    def events(self) -> Iterator[Event]:
        """The events written so far, read from the file: they need not fit into memory."""
        return read_journal(self._path)

    def write(self, kind: str, /, **fields: Any) -> Event:
        """Append one event, and return it.

        Raises:
            OSError: the disk is full or gone.
            ValueError: a field is not plain JSON.
        """
        return self._log.write(kind, **fields)

    def close(self) -> None:
        """Close the journal and release the folder."""
        self._log.close()
        os.close(self._lock)


def read_journal(path: Path) -> Iterator[Event]:
    """A journal's events, damaged ones as CORRUPT."""
    return read_events(path, JOURNAL_EVENTS)


class Chain:
    """Events as they are read, each held against the one before.

    Whoever writes a whole chain anew is not found out here: the record has the digest of the last event.

    Attributes:
        faults: what shows that these are not the events as a driver wrote them: damage, a broken chain, time that runs
            back.
        events: how many there were.
        head: the digest of the last one.
    """

    def __init__(self) -> None:
        self.faults, self.head = list[str](), FIRST
        self.events = self._clock = 0

    def take(self, event: Event) -> None:
        """The next one."""
        self.events += 1
        name = f"event {self.events}"
        if event["event"] == CORRUPT:
            self.faults.append(f"{name} is damaged: {event['what']}")
            return
        if event.get(LINK) != self.head:
            self.faults.append(f"{name}, {event['event']}, does not follow the one before it: it was edited")
        if event["event"] == "driver_begin":
            self._clock = 0  # another machine's, or another boot's
        if event["clock"] < self._clock:
            self.faults.append(f"{name}, {event['event']}, is earlier than the one before it")
        self.head, self._clock = digest_of(event), event["clock"]


def faults(events: Iterable[Event]) -> list[str]:
    """What shows that these are not the events as a driver wrote them; see `Chain`."""
    chain = Chain()
    for event in events:
        chain.take(event)
    return chain.faults


def hold(lock: int, folder: Path) -> None:
    """Have a folder alone, by its lock file, in which the one before has left the id of its process.

    A driver that was killed while it started a process has left its lock to that, for as long as it takes to start.

    Raises:
        UsageError: another driver has it.
    """
    deadline = time.monotonic() + LINGER
    while not _locked(lock):
        holder = os.pread(lock, 20, 0).decode("ascii", "replace").strip()
        named = holder.isdecimal()
        if not named or time.monotonic() >= deadline or ProcessIdentity.of(int(holder)).lives():
            who = f"process {holder}" if named else "another process"
            raise UsageError(f"{folder}: {who} is searching there; only one driver at a time")
        time.sleep(0.05)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def cut_torn_line(path: Path) -> None:
    """Take what follows the last line end from a file of lines: whoever wrote it died, or had no more space."""
    if not path.exists():
        return
    with path.open("r+b") as stream:
        end = begin = stream.seek(0, os.SEEK_END)
        whole = 0
        while begin and not whole:
            end_of_piece, begin = begin, max(0, begin - PIECE)
            stream.seek(begin)
            found = stream.read(end_of_piece - begin).rfind(b"\n")
            whole = begin + found + 1 if found >= 0 else 0
        if whole != end:
            stream.truncate(whole)
