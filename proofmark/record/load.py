"""Reading back any record: of whatever suite, of today's schema or the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from proofmark.errors import UsageError, harmless
from proofmark.plain_json import parse_json
from proofmark.record.envelope import SCHEMA_VERSION, CaseRecord, of_version, read_raw, validated
from proofmark.record.figures import Figure

WITHOUT_FIGURES = 2
"""The schema before: the same detail, from which the suite makes the figures."""


class Readable(Protocol):
    """What reading a suite's records needs of the suite."""

    @property
    def record_type(self) -> type[CaseRecord]:
        """The type of its records."""

    def figures(self, record: Any) -> Sequence[Figure]:
        """All figures of a record."""


Find = Callable[[str], Readable | None]


def load_record(path: Path, find: Find) -> CaseRecord:
    """The record that a file holds.

    Args:
        path: the file.
        find: a suite by its name; None where it is not installed. Of its record the envelope is read then, with the
            figures if it has them.

    Raises:
        UsageError: unreadable, of schema 1 or an unknown one, or not a record.
    """
    return load_written(path, find)[0]


def load_written(path: Path, find: Find) -> tuple[CaseRecord, int]:
    """The record that a file holds, and the schema that it was written in.

    Raises:
        UsageError: as `load_record`.
    """
    raw = read_raw(path, (WITHOUT_FIGURES, SCHEMA_VERSION))
    written = int(raw["schema_version"])
    return _made(raw, path, find), written


def parse_record(text: str, path: Path, find: Find) -> CaseRecord:
    """The record that a text describes, as the process that wrote the file at `path` sent it.

    Raises:
        UsageError: as `load_record`.
    """
    try:
        raw = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(harmless(f"{path}: not a run record: {error}")) from None
    return _made(of_version(raw, path, (SCHEMA_VERSION,)), path, find)


def _made(raw: dict[str, Any], path: Path, find: Find) -> CaseRecord:
    old = raw["schema_version"] == WITHOUT_FIGURES
    raw["schema_version"] = SCHEMA_VERSION
    suite = find(str(raw.get("suite")))
    if suite is None:
        return validated(CaseRecord, {name: raw[name] for name in CaseRecord.model_fields if name in raw}, path)
    record = validated(suite.record_type, raw, path).whole(path.parent)
    return record.with_figures(suite.figures(record)) if old else record
