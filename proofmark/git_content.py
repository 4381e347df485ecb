"""What commits and files hold, byte for byte. Attributes, by which git takes other bytes for the same, lie in the tree
itself (.gitattributes): whoever wrote the files has written them too, so they have no say in anything here."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from proofmark.errors import UsageError, harmless
from proofmark.folders import make_folder
from proofmark.git import answer_of_git, ask_git, stream_of_git

SUBMODULE, LINK, EXECUTABLE = "160000", "120000", "100755"
"""Modes of entries: another repository's commit, a link, a file that may be run. All others are plain files."""


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
        UsageError: git fails, or a file can't be read.
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


def write_files(repository: Path, entries: Iterable[Entry], tree: Path, requests: Path) -> None:
    """Write files as they are committed: no filter runs. Links come last, so that none leads a file elsewhere.

    Args:
        repository: that has their content.
        entries: submodules are left out.
        tree: a folder of which nothing is there yet.
        requests: a file to be written, of what git is asked for.

    Raises:
        UsageError: git fails, or lacks a content.
        OSError: a file can't be written.
    """
    wanted = [entry for entry in entries if entry.mode != SUBMODULE]
    requests.write_text("".join(f"{entry.object}\n" for entry in wanted))
    links = []
    with stream_of_git(repository, ["cat-file", "--batch", "--buffer"], requests) as answer:
        for entry in wanted:
            left = _size(answer.readline(), entry)
            path = tree / entry.path
            make_folder(path.parent)
            if entry.mode == LINK:
                links.append((path, answer.read(left)))
            else:
                _write(path, 0o777 if entry.mode == EXECUTABLE else 0o666, answer, left)
            answer.read(1)  # the line's end
    for path, leads_to in links:
        path.symlink_to(os.fsdecode(leads_to))


def _write(path: Path, mode: int, answer: IO[bytes], left: int) -> None:
    """The next `left` bytes of an answer, to a file that is not there yet."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        while left and (part := answer.read(min(left, 1 << 20))):
            left -= file.write(part)
    if left:
        raise UsageError(f"git ended before it had told the content of {path}")


def _size(header: bytes, entry: Entry) -> int:
    """By `object kind size`; of one that is not there, `object missing`."""
    facts = header.split()
    if len(facts) != 3 or facts[1] != b"blob":
        raise UsageError(f"{entry.path}: this repository lacks its content, {entry.object[:12]}: git fsck says more")
    return int(facts[2])


def entries_in(listed: bytes) -> Iterator[Entry]:
    """`mode kind object TAB path NUL` again and again (`ls-tree`), or `mode object stage TAB path NUL` (`ls-files`)."""
    for line in listed.split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, *others = facts.decode("ascii").split()
        yield Entry(mode, max(others, key=len), os.fsdecode(path))


def _content(path: Path) -> bytes | None:
    """A file's bytes, or where a link leads; None where there is neither, which git tells.

    Raises:
        UsageError: it can't be read.
    """
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return os.fsencode(os.readlink(path))
        return path.read_bytes() if stat.S_ISREG(mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(harmless(f"{path}: cannot be compared with what is committed: {error.strerror}")) from None


def _named(content: bytes, entry: Entry) -> str:
    """The name that git would give it as it is, by the hash of the entry's repository."""
    kind = "sha1" if len(entry.object) == 40 else "sha256"
    return hashlib.new(kind, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
