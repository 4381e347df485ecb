"""A folder of images, looked through once for many processes, as a search's trials are: of ImageNet on a network's file
system that takes minutes.

What is kept is the text whose SHA-256 identifies the images. So a process that reads it identifies what it was told,
and not what lies there: the referee looks through the folder again when it judges, and refuses whoever had another.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from proofmark.plain_json import open_plain
from proofmark.record.parts import Identity
from suites.data.images.files import ImageFiles, identity_by_sizes, sizes_of


def listed(root: Path, classes: int, kept: Path | None) -> tuple[ImageFiles, Identity]:
    """The images of a folder, and what identifies them: their names and sizes.

    Args:
        root: the folder.
        classes: how many it has.
        kept: the file that tells what lies there, written by whoever comes first; None where nobody else comes. Where
            it can't be written or read, each looks for himself.

    Raises:
        StepError: the folder is not as expected.
    """
    if kept is not None:
        with contextlib.suppress(OSError, ValueError):
            _keep(root, classes, kept)
            return _told(root, classes, kept)
    files, digest = ImageFiles(root, classes), hashlib.sha256()
    for line in sizes_of(root, files.paths()):
        digest.update(line)
    return files, identity_by_sizes(root, digest.hexdigest(), len(files))


def _keep(root: Path, classes: int, kept: Path) -> None:
    """See that it is there: the first one writes it, and the others wait for that. The lock goes with its holder."""
    with kept.with_suffix(".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if kept.exists():
            return
        partial = kept.with_suffix(".partial")
        with partial.open("wb") as stream:
            stream.writelines(sizes_of(root, ImageFiles(root, classes).paths()))
        partial.replace(kept)


def _told(root: Path, classes: int, kept: Path) -> tuple[ImageFiles, Identity]:
    digest = hashlib.sha256()

    def names(stream: BinaryIO) -> Iterator[bytes]:
        entry = b""
        for line in stream:
            digest.update(line)
            entry += line
            name, ends, _ = entry.rpartition(b"\0")
            if ends:  # a name may have line ends, but no zero
                yield name
                entry = b""

    with open_plain(kept) as stream:
        files = ImageFiles(root, classes, names(stream))
    return files, identity_by_sizes(root, digest.hexdigest(), len(files))
