"""Files of the site: each is written whole or not at all, and data has the digest of its content in its name."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DRAFT = ".draft-"


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A draft to write, which takes the place of `path` when it is done.

    Raises:
        OSError: no space, no permission.
    """
    draft = path.with_name(f"{DRAFT}{secrets.token_hex(8)}{path.suffix}")
    try:
        yield draft
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write(path: Path, content: str) -> None:
    """Write a text, UTF-8.

    Raises:
        OSError: no space, no permission.
    """
    with whole(path) as draft:
        draft.write_text(content, encoding="utf-8")


def write_script(folder: Path, stem: str, data: Any) -> str:
    """Write data as a script that a page loads, since no page may read files where it was opened as one.

    Returns its name, which says what is in it: of other data it is another.
    """
    content = as_json(data)
    handed_over = script(stem, content)  # not the data alone: an older site may have that in another form
    name = f"{stem}-{hashlib.sha256(handed_over.encode()).hexdigest()[:12]}"
    path = folder / f"{name}.js"
    if not path.exists():
        write(path, script(name, content))
    return name


def script(name: str, content: str) -> str:
    """A script that hands JSON over under a name.

    As a text that the page parses: in an object literal a key `__proto__` would be no key.
    """
    return f"scoreboard.receive({as_json(name)}, JSON.parse({as_json(content)}));\n"


def as_json(data: Any) -> str:
    """JSON that is harmless in a script: ASCII, and without what could end an element."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e")


def sweep(folder: Path, keep: Set[str]) -> None:
    """Delete the files of a folder that have none of these names, and drafts that an interrupted build left."""
    for entry in os.scandir(folder):
        if entry.is_file(follow_symlinks=False) and entry.name not in keep:
            Path(entry.path).unlink(missing_ok=True)
