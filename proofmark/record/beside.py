"""Parts of a record that are too many for its file: they stand in one of their own beside it, one a line."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from proofmark.errors import UsageError, harmless, reason
from proofmark.plain_json import first_of, parse_json
from proofmark.record.events.log import lines
from proofmark.record.parts import Part

LONGEST, LARGEST = 8 << 20, 1 << 30
"""Bytes of a line, and of a file: no more is written, and no more is read."""

DIGITS = 16
"""Digits of its digest in a file's name."""

P = TypeVar("P", bound=Part)


class Beside(Part):
    """The number of parts in such a file, and its digest."""

    items: int = Field(ge=0, lt=1 << 31)
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="of the file")

    def file(self, name: str) -> str:
        """The file's name, which depends on its content."""
        return f"{name}.{self.sha256[:DIGITS]}.jsonl"


def beside(parts: Iterable[Part], write: Callable[[bytes], object] = len) -> Beside:
    """Number and digest of these parts, as a file would have them.

    Args:
        write: takes each of its lines.

    Raises:
        OSError: nobody could read it: it or one of them is too large.
    """
    digest, items = hashlib.sha256(), 0
    for items, line in enumerate(_lines(parts), 1):  # noqa: B007 (how many there were)
        digest.update(line)
        write(line)
    return Beside(items=items, sha256=digest.hexdigest())


def write_beside(parts: Iterable[Part], folder: Path, name: str) -> Path:
    """Write them, whole or not at all, into a file of their own: another record's stays as it is.

    Returns:
        That file, see `Beside.file`.

    Raises:
        OSError: no space, no permission, or more than a file may have.
    """
    draft = folder / f".{name}.{secrets.token_hex(8)}"  # nobody can have laid a link there
    try:
        with draft.open("xb") as stream:
            written = beside(parts, stream.write)
            stream.flush()
            os.fsync(stream.fileno())
        return draft.replace(folder / written.file(name))
    finally:
        draft.unlink(missing_ok=True)


def remove_others(folder: Path, name: str, kept: Path | None) -> None:
    """Remove the files of earlier records, which no record refers to any more.

    Raises:
        OSError: no permission.
    """
    for path in folder.glob(f"{name}.{'[0-9a-f]' * DIGITS}.jsonl"):
        if path != kept:
            path.unlink()


def read_beside(path: Path, known: Beside, kind: type[P]) -> tuple[P, ...]:
    """The parts that a record refers to, read line by line.

    Raises:
        UsageError: it can't be read, is not a regular file, has another content or a line that is no such part.
    """
    try:
        found = tuple(_read(path, known, kind))
    except ValidationError as error:
        raise UsageError(harmless(f"{path}: {first_of(error)}")) from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(harmless(f"{path}: {reason(error)}")) from None
    return found


def _read(path: Path, known: Beside, kind: type[P]) -> Iterator[P]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("is not a regular file")
        if found.st_size > LARGEST:
            raise ValueError(f"is larger than {LARGEST >> 20} MiB")
        digest, number = hashlib.sha256(), 0
        for number, line in enumerate(lines(stream, LONGEST), 1):
            if number > known.items:
                raise ValueError(f"has more than the {known.items} lines that its record says")
            digest.update(line)
            yield kind.model_validate(parse_json(line.decode("utf-8")))
    if number != known.items or digest.hexdigest() != known.sha256:
        raise ValueError("is not the file that its record was saved with")


def _lines(parts: Iterable[Part]) -> Iterator[bytes]:
    size = 0
    for number, part in enumerate(parts, 1):
        line = f"{part.model_dump_json()}\n".encode()
        size += len(line)
        if len(line) > LONGEST:
            raise _too_large(f"line {number} would have {len(line)} bytes, at most {LONGEST} are read")
        if size > LARGEST:
            raise _too_large(f"it would be larger than {LARGEST >> 20} MiB from line {number} on, and no more is read")
        yield line


def _too_large(what: str) -> OSError:
    return OSError(errno.EFBIG, f"the file beside the record cannot be written: {what}")
