"""A host's work directory: files known by their SHA-256, code trees that they make, and what runs leave."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from proofmark.process.scratch.own_directory import remove

TEMPORARY = "proofmark-host-"
"""How the name of a run's temporary directory begins."""

COMPILED = "__pycache__"
"""Where Python keeps modules that it has compiled."""

ABANDONED = 86_400.0
"""Seconds after which a run's folders are nobody's any more: whoever attends to it touches them all the time."""


class Store:
    """A host's work directory. Hosts may share it."""

    def __init__(self, folder: Path) -> None:
        """Make the directory, see whether it can be written, and remove what nobody else will.

        Raises:
            OSError: it can't.
        """
        self.folder, self.runs = folder, folder / "runs"
        self.tree, self._files = Path(), dict[str, str]()
        self._begun: Path | None = None
        for name in ("objects", "code", "runs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        probe = _beside(self.runs / "probe")
        probe.write_bytes(b"x" * 4096)
        now = probe.stat().st_mtime
        probe.unlink()
        _remove_leftovers(self.runs.iterdir(), now)
        _remove_leftovers((folder / "objects").glob(".*"), now)  # of which the rest never came

    def lack(self, tree: str, manifest: bytes) -> list[str]:
        """Which files of a code tree are not here yet; the manifest is path to SHA-256."""
        self._files = json.loads(manifest)
        self.tree = self.folder / "code" / tree
        if self.tree.is_dir():
            return []
        return sorted({sha for sha in self._files.values() if not self._is_whole(sha)})

    def take(self, sizes: dict[str, int], files: bytes, more: bool = False) -> None:
        """Keep files, one after another, by their SHA-256. Of the last one there may be `more` to come, with the next.

        Raises:
            ValueError: one is not what it should be.
            OSError: no space, no permission.
        """
        begin, last = 0, next(reversed(sizes), None)
        for sha, length in sizes.items():
            new, self._begun = self._begun or _beside(self._object(sha)), None
            try:
                with new.open("ab") as stream:
                    stream.write(memoryview(files)[begin : begin + length])
                if more and sha == last:
                    self._begun = new
                elif _sha256(new) != sha:
                    raise ValueError("a file was damaged on its way")
                else:
                    new.rename(self._object(sha))
            except (OSError, ValueError):
                new.unlink(missing_ok=True)
                raise
            begin += length

    def lay_out(self) -> list[str]:
        """Put the tree together where it is not there yet; the files of one that is there that were edited.

        What Python keeps there of modules is removed: nobody can tell what it was compiled from, and it is run in place
        of their source. What cannot be is there under another name then, and an edit.
        """
        for parent, folders, _ in os.walk(self.tree):
            compiled = Path(parent, COMPILED)
            if COMPILED in folders and not compiled.is_symlink():
                folders.remove(COMPILED)
                aside = _beside(self.tree.with_name(COMPILED))  # out of what another session looks through
                with contextlib.suppress(FileNotFoundError):  # another session was faster
                    compiled.rename(aside)
                remove(aside)
        if not self.tree.is_dir():
            new = _beside(self.tree)
            self._put_together(new)
            try:
                new.rename(self.tree)
            except OSError:  # another session was faster
                shutil.rmtree(new)
        found = {path: _digest(entry) for path, entry in _entries_under(self.tree)}
        names = found.keys() | self._files.keys()
        return sorted(name for name in names if found.get(name) != self._files.get(name))

    def _put_together(self, new: Path) -> None:
        """The tree, of the files themselves where the disk can: one that is edited in it is no longer whole."""
        for folder in {(new / path).parent for path in self._files}:
            folder.mkdir(parents=True, exist_ok=True)
        for path, sha in self._files.items():
            try:
                os.link(self._object(sha), new / path)
            except OSError:
                shutil.copyfile(self._object(sha), new / path)

    def _is_whole(self, sha: str) -> bool:
        """Whether a file is here as it was sent: power may have failed since."""
        try:
            return _sha256(self._object(sha)) == sha
        except OSError:
            return False

    def _object(self, sha: str) -> Path:
        return self.folder / "objects" / sha


def temporary_directory(environment: dict[str, str]) -> Path:
    """A directory for a run's temporary files, where the user wants it unless sockets would not fit in it: their paths
    have 107 bytes at most. What lies there of runs that nobody has removed goes."""
    base = environment.get("TMPDIR") or tempfile.gettempdir()
    fits = len(os.fsencode(base)) <= 107 - len(f"/{TEMPORARY}01234567/pymp-01234567/listener-01234567")
    folder = Path(base if fits else "/tmp")  # noqa: S108 (its name is random)
    _remove_leftovers(folder.glob(TEMPORARY + "*"), now=time.time())
    return Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=folder))


def _remove_leftovers(entries: Iterable[Path], now: float) -> None:
    """What nobody has removed: the host was switched off. `now` is by its disk's own clock."""
    for entry in entries:
        with contextlib.suppress(OSError):  # going just now
            if now - entry.lstat().st_mtime > ABANDONED:
                if entry.is_dir() and not entry.is_symlink():
                    remove(entry)
                else:
                    entry.unlink()


def _beside(path: Path) -> Path:
    """A hidden name next to `path` that no other host which shares the disk takes."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def _entries_under(folder: str | Path, within: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Files and links of a tree by their paths in it, but for what Python itself adds."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() or entry.is_file():
                yield within + entry.name, entry
            elif entry.is_dir() and entry.name != COMPILED:
                yield from _entries_under(entry.path, f"{within}{entry.name}/")


def _digest(entry: os.DirEntry[str]) -> str:
    """SHA-256 of a file; of a link, none of which was sent, nothing: it may lead elsewhere later, and to a whole
    package."""
    return "" if entry.is_symlink() else _sha256(Path(entry.path))


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
