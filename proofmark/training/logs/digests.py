"""What a round's processes wrote, as it was when they had ended: what is changed later is seen by it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

HOMES = ("", "server*/")
"""Where nodes' folders lie: of a service's independent servers all but the first have folders of their own."""

LOGS = tuple(f"{home}noderank*/{name}.jsonl" for home in HOMES for name in ("rank*", "agent"))
"""Beside them lies what ranks wrote themselves, such as checkpoints."""


def digests_of(directory: Path) -> dict[str, str]:
    """SHA-256 of each log of a round's folder, by its path in it.

    Raises:
        OSError: one can't be read.
    """
    found = {path for pattern in LOGS for path in directory.glob(pattern) if path.is_file()}
    return {path.relative_to(directory).as_posix(): _digest(path) for path in sorted(found)}


def changed_since(directory: Path, digests: Mapping[str, str]) -> Iterator[str]:
    """Logs that are not what they were, each in part of a sentence."""
    now = digests_of(directory)
    if not any(name.startswith("server") for name in digests):  # of before those were hashed
        now = {name: digest for name, digest in now.items() if not name.startswith("server")}
    for name in sorted(digests.keys() | now.keys()):
        path = f"{directory.name}/{name}"
        if name not in now:
            yield f"{path} is gone"
        elif name not in digests:
            yield f"{path} was laid there after its run had ended"
        elif now[name] != digests[name]:
            yield f"{path} is not what it was when its run ended"


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
