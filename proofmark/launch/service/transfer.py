"""What a job needs on its way to the object store, and what it left on its way home."""

from __future__ import annotations

import contextlib
import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.far_end.protocol import goes_home
from proofmark.launch.service.contract import ObjectStore, Places, ServiceError, Stored
from proofmark.launch.service.patience import Patience
from proofmark.launch.service.ticket import MANIFEST, PACKED, TICKET, LeftFile, Manifest, Ticket, read_wire

EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in an archive: one content has one archive."""

LARGEST_MANIFEST, LARGEST_FILE, LARGEST_JOB = 64 << 20, 1 << 30, 64 << 30
"""Bytes that come home at most: of a node's manifest, of any other file, of all that a job's nodes left."""

ARRIVING = ".arriving"
"""How the name of a file ends that has not been compared yet."""

COARSE = 1.0
"""Seconds to which a store tells times."""


def packed(code: CodeTree) -> bytes:
    """A code tree as one file: a store is asked once, and not for each of its files.

    Uncompressed: what a deflated one has for bytes is for this machine's zlib to say, and another's would be none.
    """
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as pack:
        for name, sha in sorted(code.files.items()):
            pack.writestr(zipfile.ZipInfo(name, EARLIEST), code.contents[sha])
    return archive.getvalue()


def send(
    store: ObjectStore, patience: Patience, places: Places, code: CodeTree, boot: Mapping[str, bytes], ticket: Ticket
) -> None:
    """Put a job's code where its name is its content, beside it what nodes begin with, and then the ticket.

    The archive is sent where none of its size is: the ticket has its SHA-256, and nodes unpack no other.

    Raises:
        ServiceError: the store refuses one; the text names it.
    """
    there = patience.ask(lambda: store.list(places.code))
    archive = packed(code)
    if PACKED not in there or there[PACKED].size != len(archive):
        _put(store, patience, f"{places.code}{PACKED}", archive)
    for name, content in boot.items():
        _put(store, patience, f"{places.code}{name}", content)
    ticket = ticket.model_copy(update={"packed": hashlib.sha256(archive).hexdigest()})
    _put(store, patience, f"{places.ticket}{TICKET}", ticket.model_dump_json().encode())


def _put(store: ObjectStore, patience: Patience, key: str, content: bytes) -> None:
    patience.ask(lambda: store.put(key, content))


@dataclass
class Brought:
    """What came home of a job, node by node; and the objects that no manifest knows, by their path there."""

    manifests: dict[int, Manifest] = field(default_factory=dict)
    wrong: dict[int, str] = field(default_factory=dict)
    others: dict[str, Stored] = field(default_factory=dict)


class Results:
    """The objects that a job left."""

    def __init__(self, store: ObjectStore, patience: Patience, prefix: str, job: str, created: float | None) -> None:
        self._store, self._patience, self._prefix, self._job = store, patience, prefix, job
        self._created, self._room = created, LARGEST_JOB

    def bring_home(self, homes: Sequence[str], leaves: Sequence[str], folder: Path) -> Brought:
        """All that the nodes' manifests say, counted and compared; of each node what is wrong with it.

        Args:
            homes: where each node's files lie.
            leaves: patterns of the names that they may have.
            folder: where they go.

        Raises:
            ServiceError: the store can't be asked.
            OSError: a file can't be written.
        """
        listed = self._patience.ask(lambda: self._store.list(self._prefix))
        self._room = LARGEST_JOB
        brought = Brought(others=dict(listed))
        for number, home in enumerate(homes):
            try:
                brought.manifests[number] = self._node(listed, home, leaves, folder, brought)
            except _Wrong as wrong:
                brought.wrong[number] = str(wrong)
        return brought

    def _node(
        self, listed: Mapping[str, Stored], home: str, leaves: Sequence[str], folder: Path, brought: Brought
    ) -> Manifest:
        with _arriving(folder / home / MANIFEST) as path:  # in its place last: where that is, all else is
            manifest = self._manifest(listed, f"{home}/{MANIFEST}", path)
            brought.others.pop(f"{home}/{MANIFEST}", None)
            for name, left in manifest.files.items():
                key = f"{home}/{name}"
                if not goes_home(name, leaves):
                    raise _Wrong(f"{self._prefix}{key}: the job leaves no file of that name")
                self._check(listed, key, left)
                self._bring(key, left, folder / key)
                brought.others.pop(key, None)
        return manifest

    def _bring(self, key: str, left: LeftFile, path: Path) -> None:
        with _arriving(path) as arriving:
            self._fetch(key, arriving)
            if _sha256(arriving) != left.sha256:
                raise _Wrong(f"{self._prefix}{key}: it is not what its node left there")

    def _manifest(self, listed: Mapping[str, Stored], key: str, path: Path) -> Manifest:
        self._check(listed, key, None)
        self._fetch(key, path)
        try:
            manifest = read_wire(path, Manifest)
        except ValueError as error:
            raise _Wrong(f"{self._prefix}{key}: {error}") from None
        if manifest.job != self._job:
            raise _Wrong(f"{self._prefix}{key}: it is of another job, {manifest.job:.80}")
        return manifest

    def _check(self, listed: Mapping[str, Stored], key: str, left: LeftFile | None) -> None:
        stored = listed.get(key)
        if stored is None:
            raise _Wrong(f"{self._prefix}{key} is missing")
        most = min(LARGEST_FILE if left else LARGEST_MANIFEST, self._room)
        if stored.size > most:
            raise _Wrong(f"{self._prefix}{key} has {stored.size} bytes, and {most} may come home")
        self._room -= stored.size
        if left is not None and stored.size != left.size:
            raise _Wrong(f"{self._prefix}{key} has {stored.size} bytes, its node left {left.size}")
        if older := is_stale(stored, self._created):
            raise _Wrong(f"{self._prefix}{key} {older}")

    def _fetch(self, key: str, path: Path) -> None:
        try:
            self._patience.ask(lambda: self._store.fetch(f"{self._prefix}{key}", path))
        except ServiceError as error:
            raise _Wrong(str(error)) from None


@contextlib.contextmanager
def _arriving(path: Path) -> Iterator[Path]:
    """Where a file is to be had first: it takes its place once it was looked at. Until then what was here stays, and
    whoever follows the file, as a session does rank 0's log, takes the time of no download for the training's."""
    arriving = path.with_name(f"{path.name}{ARRIVING}")
    arriving.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield arriving
        arriving.replace(path)
    finally:
        arriving.unlink(missing_ok=True)


def is_home(folder: Path, job: str, homes: Sequence[str], leaves: Sequence[str]) -> bool:
    """Whether all that a job's nodes left has come home, by manifests that did."""
    return all(_has_all(folder / home, job, leaves) for home in homes)


def _has_all(home: Path, job: str, leaves: Sequence[str]) -> bool:
    try:
        manifest = read_wire(home / MANIFEST, Manifest)
        files = manifest.files.items()
        return manifest.job == job and all(
            goes_home(name, leaves) and _sha256(home / name) == left.sha256 for name, left in files
        )
    except (OSError, ValueError):
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _Wrong(Exception):
    """What is wrong with a node's objects."""


def is_stale(stored: Stored, created: float | None) -> str | None:
    """That an object was there before the job was, or that it can't be told; None if it was not."""
    if created is None:
        return "may be older than the job: the service does not say when that was created"
    if stored.modified >= created - COARSE:
        return None
    return f"is {created - stored.modified:.0f} s older than the job"
