"""The code that hosts need, known by its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from proofmark.folders import files_below

PORTION = 2 << 20
"""Bytes of files that are on their way to a host at once: each of many hosts has some copies of them made here."""


@dataclass(frozen=True)
class CodeTree:
    """Files as they were when it was made: hosts may come hours later, and whoever queues for them may edit meanwhile.

    Attributes:
        files: the SHA-256 of each, by its path in the tree.
        contents: all of them by their SHA-256.
        led_out: links out of their part of the tree, one vendor's folder say, which are not of it: whoever may put a
            link there would have any file of this user's sent to where that vendor's code reads it.
    """

    files: dict[str, str]
    contents: dict[str, bytes] = field(repr=False)
    led_out: tuple[Path, ...] = ()

    @classmethod
    def of(cls, root: Path, packages: Iterable[str], files: Iterable[str] = ()) -> CodeTree:
        """Packages, single modules and named files in `root`, without what Python or an editor leaves there."""
        found = [*sorted(root.glob("*.py")), *(root / file for file in files)]
        for package in packages:
            found += sorted(files_below((root / package).resolve()))
        names = {path: _name(path, root, packages) for path in found if path.is_file()}
        kept = {name: path for path, name in names.items() if not any(_is_left(part) for part in name.split("/"))}
        out = {path for path in kept.values() if not path.resolve().is_relative_to(_part_of(path, root, packages))}
        sent = {name: path for name, path in kept.items() if path not in out}
        read = {name: path.read_bytes() for name, path in sent.items()}
        files_sent = {name: hashlib.sha256(content).hexdigest() for name, content in read.items()}
        return cls(files_sent, {files_sent[name]: content for name, content in read.items()}, tuple(sorted(out)))

    @cached_property
    def manifest(self) -> bytes:
        """Paths and SHA-256, as JSON."""
        return json.dumps(dict(sorted(self.files.items()))).encode()

    @cached_property
    def sha256(self) -> str:
        """The digest of the manifest: the tree's name on hosts."""
        return hashlib.sha256(self.manifest).hexdigest()

    def portions(self, shas: Iterable[str]) -> Iterator[tuple[dict[str, int], bytes, bool]]:
        """Some of the files, `PORTION` bytes at a time: how many of each, these bytes, and whether the last file has
        more, with which the next portion begins."""
        sizes, body = dict[str, int](), bytearray()
        for sha in shas:
            left, more = memoryview(self.contents[sha]), True
            while more:
                piece = left[: PORTION - len(body)]
                left, more = left[len(piece) :], len(piece) < len(left)
                sizes[sha] = len(piece)
                body += piece
                if len(body) == PORTION:
                    yield sizes, bytes(body), more
                    sizes, body = {}, bytearray()
        if sizes:
            yield sizes, bytes(body), False


def _name(path: Path, root: Path, packages: Iterable[str]) -> str:
    """A file's path in the tree; a package may be a link to where it really lies."""
    for package in packages:
        home = (root / package).resolve()
        if home in path.parents:
            return f"{package}/{path.relative_to(home).as_posix()}"
    return path.relative_to(root).as_posix()


def _part_of(path: Path, root: Path, packages: Iterable[str]) -> Path:
    """The folder out of which a file may not lead: that below its package, such as one vendor's, or its own."""
    for package in packages:
        home = (root / package).resolve()
        if home in path.parents:
            first, *more = path.relative_to(home).parts
            return home / first if more else home
    return path.parent.resolve()


def _is_left(part: str) -> bool:
    return part == "__pycache__" or part.startswith(".") or part.endswith("~")
