"""Which records lie below some directories, and whether what lies beside one has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from proofmark.errors import UsageError

RECORD = "record.json"


@dataclass(frozen=True)
class Found:
    """A record's file. `state` changes with any file of its folder: names, sizes, times of change."""

    path: Path
    state: str


def discover(directories: Sequence[Path]) -> Iterator[Found]:
    """Every record below the directories, each once; links to folders, such as `latest`, are not followed.

    Raises:
        UsageError: one of them is no directory that can be read.
    """
    seen: set[str] = set()
    for directory in directories:
        if not directory.is_dir():
            raise UsageError(f"{directory}: not a directory; give one with results in it")
        for folder, names, files in os.walk(directory.resolve(), onerror=_refuse):
            names.sort()
            if RECORD in files and folder not in seen:
                seen.add(folder)
                yield Found(Path(folder, RECORD), _state(folder))


def _refuse(error: OSError) -> None:
    raise UsageError(f"{error.filename}: {error.strerror}")


def _state(folder: str) -> str:
    digest = hashlib.sha256()
    for where, names, files in os.walk(folder):
        names.sort()
        for name in sorted(files):
            path = os.path.join(where, name)
            known = os.lstat(path)  # the time of change, unlike that of modification, can't be set
            digest.update(
                f"{os.path.relpath(path, folder)}\0{known.st_size}\0{known.st_ctime_ns}\n".encode(
                    "utf-8", "surrogateescape"
                )
            )
    return digest.hexdigest()
