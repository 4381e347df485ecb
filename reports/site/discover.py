"""Which sessions' folders lie below some directories, and whether anything in one has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from proofmark.errors import UsageError, harmless
from proofmark.folders import RANKS_WRITE, walk
from proofmark.record.envelope import RECORD_FILE
from proofmark.record.events.log import LOG_FILE
from proofmark.record.integrity.manifest import MANIFEST, is_whole
from proofmark.verification.verify import only_part


@dataclass(frozen=True)
class Session:
    """A folder with records: a session's, which has a manifest, or that of a single run without one.

    `state` changes with any file below it: names, sizes, times of change.
    """

    folder: Path
    records: tuple[Path, ...]
    state: str


def discover(directories: Sequence[Path]) -> Iterator[Session]:
    """Every folder with records below the directories, each once; links, such as `latest`, are not followed.

    Raises:
        UsageError: one of them is no directory, or only a part of a session's.
    """
    seen: set[Path] = set()
    for directory in directories:
        if not directory.is_dir():
            raise UsageError(harmless(f"{directory}: not a directory; expected one with results in it"))
        if session_above := next(filter(is_whole, directory.resolve().parents), None):
            raise only_part(directory, session_above)
        refused: list[OSError] = []
        for folder, names, files in walk(directory.resolve(), refused.append):
            if MANIFEST in files or RECORD_FILE in files:
                session = _session(folder)
                if session.records and folder not in seen:
                    yield session
                seen.add(folder)
            elif not {LOG_FILE, RANKS_WRITE}.intersection(files):  # a log's run goes on, or was killed
                continue
            names.clear()  # what is below belongs to it, and may be of a vendor's making
        yield from _closed(refused)


def _closed(refused: Sequence[OSError]) -> Iterator[Session]:
    """What can't be looked into, as sessions of which nothing can be read: one submitter's folder is told, and keeps
    nobody else from the tables. What is gone was taken away by a session that runs."""
    for error in refused:
        if not isinstance(error, FileNotFoundError):
            folder = Path(error.filename)
            yield Session(folder, (folder / RECORD_FILE,), f"{error}")


def _session(folder: Path) -> Session:
    digest, records = hashlib.sha256(), list[Path]()
    for where, _, files in walk(folder, lambda error: digest.update(os.fsencode(f"{error}\n"))):
        for path in (where / name for name in files):
            try:
                known = os.lstat(path)  # the time of change, unlike that of modification, can't be set
            except OSError as error:
                digest.update(os.fsencode(f"{error}\n"))
                continue
            line = f"{path.relative_to(folder)}\0{known.st_size}\0{known.st_ctime_ns}\n"
            digest.update(os.fsencode(line))
            if path.name == RECORD_FILE and not (records and records[-1].parent in path.parents):
                records.append(path)  # what lies below one is the run's own, and may be of a vendor's making
    return Session(folder, tuple(records), digest.hexdigest())
