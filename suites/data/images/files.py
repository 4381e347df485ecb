"""The files of a folder of images: which there are, held in little memory, and what they are identified by."""

from __future__ import annotations

import hashlib
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path

from proofmark.errors import StepError
from proofmark.record.parts import Identity
from suites.data.given import meant

SUFFIXES = {"jpeg", "jpg", "png", "bmp", "webp", "ppm", "tif", "tiff"}

AT_ONCE = 1024
"""Files that wait to be read: what waits takes memory."""

_LAYOUT = "expected one folder per class, each with that class's images"


class ImageFiles:
    """The image files of one folder per class, sorted by class and name.

    Of each only its name is held, and where that ends: in ImageNet 30 bytes a file, where a path takes 420. They lie in
    two pieces of memory that nothing writes to, so processes that are forked from this one share them.

    Args:
        root: the folder.
        classes: how many it must have.
        names: `class/name` of each image, in that order, where they are known already.

    Raises:
        StepError: the folder is not as expected.
    """

    def __init__(self, root: Path, classes: int, names: Iterable[bytes] | None = None) -> None:
        self._names, self._ends, self._firsts = bytearray(), array("Q"), list[int]()
        self._folders = list[Path]()
        if names is None:
            self._look_through(root)
        else:
            self._take(root, names)
        self._check(root, classes)

    def _look_through(self, root: Path) -> None:
        try:
            self._folders = sorted(path for path in root.iterdir() if path.is_dir())
            for folder in self._folders:
                self._firsts.append(len(self))
                self._add(os.fsencode(name) for name in sorted(os.listdir(folder)) if _is_image(name))
        except OSError as error:
            what = f"The data directory {root} cannot be read ({error.strerror}); {_LAYOUT}."
            raise StepError(what) from error

    def _take(self, root: Path, names: Iterable[bytes]) -> None:
        for folder, group in groupby((name.partition(b"/") for name in names), key=itemgetter(0)):
            self._firsts.append(len(self))
            self._folders.append(root / os.fsdecode(folder))
            self._add(name for *_, name in group)

    def _add(self, names: Iterable[bytes]) -> None:
        for name in names:
            self._names += name
            self._ends.append(len(self._names))

    def _check(self, root: Path, classes: int) -> None:
        folders, ends = self._folders, [*self._firsts[1:], len(self)]
        if not len(self):
            raise StepError(f"The data directory {root} holds no images in class folders; {_LAYOUT}{meant(folders)}.")
        if len(folders) != classes:
            what = f"holds {len(folders)} class folders, expected {classes}; {_LAYOUT}{meant(folders)}"
            raise StepError(f"The data directory {root} {what}.")
        empty = [each.name for each, first, end in zip(folders, self._firsts, ends, strict=True) if first == end]
        if empty:
            raise StepError(f"These class folders in {root} hold no images: {', '.join(empty)}.")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> tuple[Path, int]:
        """An image's path and its class."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        name = self._names[self._ends[index - 1] if index else 0 : self._ends[index]]
        label = bisect_right(self._firsts, index) - 1
        return self._folders[label] / os.fsdecode(bytes(name)), label

    def paths(self) -> Iterator[Path]:
        """Of all of them, in order."""
        return (self[index][0] for index in range(len(self)))


def _is_image(name: str) -> bool:
    stem, _, suffix = name.rpartition(".")
    return bool(stem) and suffix.lower() in SUFFIXES


def files_identity(root: Path, files: Iterable[Path]) -> Identity:
    """A digest over path, size and content of every file.

    Raises:
        StepError: one of them cannot be read.
    """
    digest, items, left = hashlib.sha256(), 0, iter(files)
    # hashing lets go of the interpreter's lock
    with ThreadPoolExecutor() as pool:
        while some := list(islice(left, AT_ONCE)):
            for path, (size, content) in zip(some, pool.map(_content, some), strict=True):
                digest.update(f"{path.relative_to(root).as_posix()}\0{size}\0{content}\n".encode())
            items += len(some)
    return Identity(name=root.name, sha256=digest.hexdigest(), items=items, origin=str(root))


def sizes_of(root: Path, files: Iterable[Path]) -> Iterator[bytes]:
    """Path and size of every file: the text that `identity_by_sizes` has the digest of.

    Raises:
        StepError: one of them cannot be read.
    """
    return (f"{path.relative_to(root).as_posix()}\0{_size(path)}\n".encode() for path in files)


def identity_by_sizes(root: Path, sha256: str, items: int) -> Identity:
    """Of so many files, by the digest of their `sizes_of`."""
    return Identity(name=root.name, sha256=sha256, items=items, origin=f"{root} (names and sizes)")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise StepError(f"The image {path} cannot be read: {error.strerror}.") from error


def _content(path: Path) -> tuple[int, str]:
    try:
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
            return stream.tell(), content
    except OSError as error:
        raise StepError(f"The image {path} cannot be read: {error.strerror}.") from error
