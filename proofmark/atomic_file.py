"""Files that are written whole or not at all, whatever ends the process that writes them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def write_atomically(path: Path, text: str, durable: bool = True) -> None:
    """Write a text; as `written_atomically`.

    Raises:
        OSError: no space, no permission.
    """
    with written_atomically(path, durable) as stream:
        stream.write(text)


@contextmanager
def written_atomically(path: Path, durable: bool = True) -> Iterator[TextIO]:
    """A text, UTF-8, that is written beside `path`, and takes the place of what is there when all of it was.

    Args:
        durable: whether it is on the disk then.

    Raises:
        OSError: no space, no permission.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")  # nobody can have laid a link there
    try:
        with draft.open("x", encoding="utf-8") as stream:
            yield stream
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
