"""The index of a site: what was read from which record, so that the next build reads only what has changed.

It is SQLite and not DuckDB: a build writes single rows by key, reads those of the cases that they touch, and must find
all or nothing of it after it was killed. That is what SQLite's transactions and B-trees are for, and Python has it.
What DuckDB is better at, aggregates over columns, nobody asks of the index; the exported Parquet can be opened with it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from reports.site.entry import Entry, Value

VERSION = 3
_TABLES = """
CREATE TABLE run (
  path TEXT PRIMARY KEY, state TEXT NOT NULL, id TEXT, name TEXT, started REAL, entry TEXT, figures TEXT, problem TEXT
) WITHOUT ROWID;
CREATE INDEX run_of ON run (name, started, id);
CREATE TABLE league (name TEXT PRIMARY KEY, summary TEXT NOT NULL, made REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE maker (digest TEXT NOT NULL);
"""


@dataclass(frozen=True)
class Read:
    """What became of a record's file: an entry with its figures, or a problem in a line."""

    path: str
    state: str
    entry: Entry | None = None
    figures: str = "{}"
    problem: str | None = None


def key_of(path: Path) -> str:
    """A path as the index has it: as text, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class Index:
    """A transaction on the index: what is not committed was never there."""

    def __init__(self, path: Path, maker: str) -> None:
        """Open it, or begin it anew where it is damaged, of another version, or what `maker` made is outdated.

        Raises:
            sqlite3.Error: it can be neither opened nor made.
        """
        self._path = path
        self._base = self._opened(maker)

    def _opened(self, maker: str) -> sqlite3.Connection:
        for _ in range(2):
            base = sqlite3.connect(self._path, isolation_level=None)
            try:
                known = base.execute("PRAGMA user_version").fetchone()[0] == VERSION
                if known and base.execute("SELECT digest FROM maker").fetchone() == (maker,):
                    base.execute("BEGIN IMMEDIATE")
                    return base
            except sqlite3.DatabaseError:
                pass
            base.close()
            fresh = self._path.with_name(f"{self._path.name}.new")
            fresh.unlink(missing_ok=True)
            base = sqlite3.connect(fresh)
            base.executescript(f"{_TABLES} PRAGMA user_version = {VERSION};")
            base.execute("INSERT INTO maker VALUES (?)", (maker,))
            base.commit()
            base.close()
            fresh.replace(self._path)
        raise sqlite3.DatabaseError(f"{self._path} can't be begun anew")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit, but where it was left by an error."""
        if kind is None:
            self._base.commit()
        else:
            self._base.rollback()
        self._base.close()

    def states(self) -> dict[str, str]:
        """The state of each file that was read, by path."""
        return dict(self._base.execute("SELECT path, state FROM run"))

    def names_of(self, paths: Iterable[str]) -> set[str]:
        """The cases whose league has one of these files."""
        found = (self._base.execute("SELECT name FROM run WHERE path = ?", (path,)).fetchone() for path in paths)
        return {row[0] for row in found if row and row[0] is not None}

    def names_due(self, now: float, ahead: float) -> set[str]:
        """The cases with a run that was further ahead than that when their league was made, and no longer is."""
        due = self._base.execute(
            "SELECT DISTINCT name FROM run JOIN league USING (name) WHERE started > made + ? AND started <= ?",
            (ahead, now + ahead),
        )
        return {row[0] for row in due}

    def forget(self, paths: Iterable[str]) -> None:
        """Files that are gone."""
        self._base.executemany("DELETE FROM run WHERE path = ?", [(path,) for path in paths])

    def put(self, read: Read) -> None:
        """What a file holds now."""
        entry = read.entry
        about = (entry.id, entry.name, entry.started, entry.model_dump_json()) if entry else (None,) * 4
        self._base.execute(
            "INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (read.path, read.state, *about, read.figures, read.problem),
        )

    def entries(self, name: str) -> list[Entry]:
        """A case's runs, oldest first; of files that are equal the one of each signer that is best verified."""
        rows = self._base.execute("SELECT entry FROM run WHERE name = ? ORDER BY started, id, path", (name,))
        found = dict[tuple[str, str | None], Entry]()
        for (text,) in rows:
            entry = Entry.model_validate_json(text)
            key = entry.content, entry.signer
            known = found.setdefault(key, entry)
            if len(entry.doubts) < len(known.doubts):
                found[key] = entry
        signed = {content for content, signer in found if signer is not None}
        return [entry for (content, signer), entry in found.items() if signer is not None or content not in signed]

    def figures(self, name: str, of: Container[str]) -> Iterator[tuple[str, dict[str, Value]]]:
        """Id and figures of those runs of a case whose ids are in `of`, one at a time, oldest first."""
        last = None
        for row in self._base.execute("SELECT id, figures FROM run WHERE name = ? ORDER BY started, id, path", (name,)):
            if row[0] != last and row[0] in of:
                yield row[0], json.loads(row[1])
            last = row[0]

    def ids(self) -> set[str]:
        """The ids of all runs, also of those in whose place an equal one is shown."""
        return {row[0] for row in self._base.execute("SELECT DISTINCT id FROM run WHERE id IS NOT NULL")}

    def problems(self) -> list[tuple[str, str]]:
        """Files that could not be read, and why."""
        return self._base.execute("SELECT path, problem FROM run WHERE problem IS NOT NULL ORDER BY path").fetchall()

    def set_league(self, name: str, summary: object | None, now: float) -> None:
        """What the first page says of a case by now; None: it has no run any more."""
        self._base.execute("DELETE FROM league WHERE name = ?", (name,))
        if summary is not None:
            self._base.execute("INSERT INTO league VALUES (?, ?, ?)", (name, json.dumps(summary), now))

    def leagues(self) -> dict[str, dict[str, Any]]:
        """What the first page says of each case."""
        rows = self._base.execute("SELECT name, summary FROM league ORDER BY name")
        return {name: json.loads(summary) for name, summary in rows}
