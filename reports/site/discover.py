"""Which sessions' folders lie below some directories, and whether anything in one has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from proofmark.errors import UsageError, harmless
from proofmark.record.envelope import RECORD_FILE
from proofmark.record.integrity.manifest import MANIFEST


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
        UsageError: one of them is no directory that can be read.
    """
    seen: set[str] = set()
    for directory in directories:
        if not directory.is_dir():
            raise UsageError(harmless(f"{directory}: not a directory; expected one with results in it"))
        for folder, names, files in os.walk(directory.resolve(), onerror=_refuse):
            names.sort()
            whole = MANIFEST in files
            if whole or RECORD_FILE in files:
                names.clear()  # what is below belongs to it
                session = _session(folder)
                if session.records and folder not in seen:
                    yield session
                seen.add(folder)


def _refuse(error: OSError) -> None:
    if isinstance(error, FileNotFoundError):  # a session that runs has taken it away
        return
    raise UsageError(harmless(f"{error.filename}: {error.strerror}"))


def _session(folder: str) -> Session:
    digest, records = hashlib.sha256(), list[Path]()
    for where, names, files in os.walk(folder, onerror=_refuse):
        names.sort()
        for name in sorted(files):
            path = os.path.join(where, name)
            try:
                known = os.lstat(path)  # the time of change, unlike that of modification, can't be set
            except FileNotFoundError:
                continue
            line = f"{os.path.relpath(path, folder)}\0{known.st_size}\0{known.st_ctime_ns}\n"
            digest.update(os.fsencode(line))
            if name == RECORD_FILE and not (records and records[-1].parent in Path(path).parents):
                records.append(Path(path))  # what lies below one is the run's own, and may be of a vendor's making
    return Session(Path(folder), tuple(records), digest.hexdigest())
