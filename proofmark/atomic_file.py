"""Files that are written whole or not at all, whatever ends the process that writes them."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, text: str, durable: bool = True) -> None:
    """Write a text, UTF-8, beside `path`, and put it in the place of what is there.

    Args:
        durable: whether it is on the disk when this returns.

    Raises:
        OSError: no space, no permission.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")  # nobody can have laid a link there
    try:
        with draft.open("x", encoding="utf-8") as stream:
            stream.write(text)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
