"""What commits and files hold, byte for byte. Attributes, by which git takes other bytes for the same, lie in the tree
itself (.gitattributes): whoever wrote the files has written them too, so they have no say in anything here."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proofmark.git import answer_of_git, ask_git

SUBMODULE = "160000"
"""The mode of an entry that is another repository's commit."""


def is_read_by_git(name: str) -> bool:
    """Whether a file or a folder of that name, wherever it lies, is or may become a rule for git (.gitattributes)."""
    return name.startswith(".git") and name != ".gitkeep"


@dataclass(frozen=True)
class Entry:
    """A file, a link or a submodule, as a commit or an index has it."""

    mode: str
    object: str
    path: str


def unlike(folder: Path, commit: str) -> set[str]:
    """Files below a folder that hold other bytes than in a commit. Which are gone or new git itself says rightly.

    A file that git writes otherwise than it is committed (`ident`, `eol`, `filter`) is among them even if nobody edited
    it: too much is run then, never too little. The exception is core.autocrlf, the user's own setting and nothing that
    a tree can bring along: with it all of a checkout would differ, so line ends count for nothing.

    Raises:
        UsageError: git fails.
    """
    line_ends = answer_of_git(folder, ["config", "--type=bool", "core.autocrlf"]).stdout.strip() == b"true"
    found = set()
    for entry in entries_in(ask_git(folder, ["ls-tree", "-r", "-z", commit])):
        content = _content(folder / entry.path) if entry.mode != SUBMODULE else None
        if content is None or entry.object == _named(content, entry):
            continue
        if not (line_ends and entry.object == _named(content.replace(b"\r\n", b"\n"), entry)):
            found.add(entry.path)
    return found


def entries_in(listed: bytes) -> Iterator[Entry]:
    """`mode kind object TAB path NUL` again and again (`ls-tree`), or `mode object stage TAB path NUL` (`ls-files`)."""
    for line in listed.split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, *others = facts.decode("ascii").split()
        yield Entry(mode, max(others, key=len), os.fsdecode(path))


def _content(path: Path) -> bytes | None:
    """A file's bytes, or where a link leads; None where there is neither, which git tells."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return os.fsencode(os.readlink(path))
        return path.read_bytes() if stat.S_ISREG(mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None


def _named(content: bytes, entry: Entry) -> str:
    """The name that git would give it as it is, by the hash of the entry's repository."""
    kind = "sha1" if len(entry.object) == 40 else "sha256"
    return hashlib.new(kind, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
