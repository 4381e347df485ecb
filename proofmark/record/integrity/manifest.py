"""The manifest of a session's folder: every file that lies there at its end, by its SHA-256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, ValidationError

from proofmark import __version__
from proofmark.atomic_file import write_atomically
from proofmark.errors import UsageError, harmless
from proofmark.plain_json import first_of, parse_json, read_file
from proofmark.process.wall_clock import now
from proofmark.record.parts import Part

MANIFEST, SIGNATURE = "manifest.json", "manifest.json.sig"
"""At the top of the folder: they alone are not in the manifest."""

SCHEMA: Final = 1

PIECE = 1 << 20
"""Bytes that are hashed at once."""

HOLES = 64
"""How many times as long as what the disk holds of it a file may be to be hashed: a disk that compresses makes less of
a log, and what is left by others' code may be of any length."""


class Artifact(Part):
    """What lies at a path: a file's content, or where a link leads; neither of anything else, such as a pipe."""

    sha256: str | None = Field(
        default=None, pattern="^[0-9a-f]{64}$", description="None of a file that is nearly all holes"
    )
    bytes: int | None = Field(default=None, ge=0)
    link: str | None = Field(default=None, description="a link's own text; it is never followed")


class Manifest(Part):
    """All that a session left, at the moment at which it ended."""

    schema_version: Literal[1] = 1
    proofmark: str = Field(description="the version that wrote it")
    session: str = Field(description="what the folder was called")
    made: float = Field(description="seconds since the epoch")
    altered: tuple[str, ...] = Field((), description="what somebody else had written, by the session's own word")
    files: Mapping[str, Artifact] = Field(description="by path within the folder")
    sha256: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="of this file's own text without this entry; null in older ones",
    )

    def text(self) -> str:
        """What its file holds."""
        return self.model_dump_json(indent=1, exclude_none=True) + "\n"

    def sealed(self) -> Self:
        """The manifest with the digest of its own text."""
        bare = self.model_copy(update={"sha256": None})
        return bare.model_copy(update={"sha256": hashlib.sha256(bare.text().encode()).hexdigest()})


class Difference(Part):
    """A file that is not as the manifest says."""

    file: str
    what: str


def write_manifest(folder: Path, altered: Sequence[str] = ()) -> Path:
    """Write the manifest of what lies in a folder, whole or not at all.

    Raises:
        OSError: a file can't be read, or the manifest not be written.
    """
    files = dict(sorted(artifacts(folder)))
    made = Manifest(proofmark=__version__, session=folder.name, made=now(), altered=tuple(altered), files=files)
    write_atomically(folder / MANIFEST, made.sealed().text())
    return folder / MANIFEST


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a session's folder.

    Raises:
        FileNotFoundError: there is none.
        UsageError: unreadable, of another schema, no manifest, or not as it was written.
    """
    path = folder / MANIFEST
    if path.is_symlink():
        raise UsageError(f"{path}: not a manifest: it is a link")
    try:
        content = read_file(path)
        raw = parse_json(content.decode("utf-8"))
        if isinstance(raw, dict) and raw.get("schema_version") != SCHEMA:
            raise ValueError(f"schema version {raw.get('schema_version')!r:.80}, this Proofmark reads {SCHEMA}")
        manifest = Manifest.model_validate(raw)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        first = first_of(error) if isinstance(error, ValidationError) else str(error)
        raise UsageError(harmless(f"{path}: not a manifest: {first}")) from None
    if manifest.sha256 is not None and manifest.sealed().text().encode() != content:
        raise UsageError(
            f"{path}: was edited or damaged since the session ended: its content does not match its own sha256"
        )
    return manifest


def is_whole(folder: Path) -> bool:
    """Whether it is the folder of a session that ended: a manifest may be of something else."""
    try:
        return bool(read_manifest(folder))
    except (OSError, UsageError):
        return False


def artifacts(folder: Path) -> Iterator[tuple[str, Artifact]]:
    """What lies in a folder and below, by its path there; links are not followed. Files are read in pieces.

    Raises:
        OSError: something can't be read.
    """
    left = [folder]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                path = Path(entry.path)
                name = _name(path.relative_to(folder))
                if entry.is_dir(follow_symlinks=False):
                    left.append(path)
                elif name not in (MANIFEST, SIGNATURE):
                    yield name, _artifact(path, entry)


def differences(manifest: Manifest, folder: Path) -> Iterator[Difference]:
    """What was edited, added or removed since a manifest was written, by path.

    Raises:
        OSError: something can't be read.
    """
    left, wrong = dict(manifest.files), list[Difference]()
    for name, there in artifacts(folder):  # there may be very many
        said = left.pop(name, None)
        if said is not None and said.sha256 is None:  # a copy has its holes as zeros, and a digest: it had none
            there = there.model_copy(update={"sha256": None})
        if said != there:
            wrong.append(Difference(file=name, what=_difference(said, there)))
    wrong += [Difference(file=name, what=_difference(said, None)) for name, said in left.items()]
    yield from sorted(wrong, key=lambda each: each.file)


def _difference(said: Artifact | None, there: Artifact | None) -> str:
    if there is None:
        return "is missing"
    if said is None:
        return "was added since the session ended"
    if there.link is not None:
        return "is a link now" if said.link is None else "is a link to somewhere else now"
    if said.bytes is None or there.bytes is None:
        return "is something else now: a file, a link or neither"
    if said.bytes != there.bytes:
        return f"was edited since the session ended: {there.bytes} bytes, not {said.bytes}"
    return "was edited since the session ended: its SHA-256 is another"


def _artifact(path: Path, entry: os.DirEntry[str]) -> Artifact:
    if entry.is_symlink():
        return Artifact(link=_name(Path(os.readlink(path))))
    if not entry.is_file(follow_symlinks=False):
        return Artifact()
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # it may have become a link or a pipe
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(stream.fileno())
        if status.st_size > HOLES * (status.st_blocks * 512 + PIECE):
            return Artifact(bytes=status.st_size)
        while piece := stream.read(PIECE):
            digest.update(piece)
            size += len(piece)
    return Artifact(sha256=digest.hexdigest(), bytes=size)


def _name(path: Path) -> str:
    """A path as text that UTF-8 can hold; two paths never become one."""
    raw = os.fsencode(path.as_posix().replace("\\", "\\\\"))
    return raw.decode("utf-8", "backslashreplace")
