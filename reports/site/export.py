"""A case's runs as CSV, JSON and Parquet: a row for each run, a column for each figure."""

from __future__ import annotations

import csv
import importlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from reports.content import text
from reports.site.entry import Entry, Value
from reports.site.files import whole
from reports.site.ranking import Standing

NO_PARQUET = "no Parquet is written without pyarrow: python -m pip install pyarrow"
_ROWS = 1000
"""Of a row group of Parquet, that many are in memory."""

Row = dict[str, Value]


def parquet_there() -> bool:
    """Whether Parquet can be written."""
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError:
        return False
    return True


class Table:
    """The rows of a case, made anew for each form. Figures that are withheld are null; `verdict` says by what."""

    def __init__(self, entries: Sequence[Entry], standings: dict[str, Standing], figures: Any) -> None:
        """`figures` gives, whenever it is called, ids and figures of the runs."""
        self._entries = {entry.id: entry for entry in entries}
        self._standings, self._figures = standings, figures
        self._kinds: dict[str, type] = {}
        for _, values in figures():
            for key, value in values.items():
                if value is not None and self._kinds.setdefault(key, _kind(value)) is not _kind(value):
                    self._kinds[key] = str
                else:
                    self._kinds.setdefault(key, float) if value is not None else None
        self.variants = list(dict.fromkeys(name for entry in entries for name in entry.variant))

    def columns(self) -> dict[str, type]:
        """Names of columns, and what they hold."""
        variant_columns = {f"variant_{name}": str for name in self.variants}
        return {**_ENVELOPE, **variant_columns, **{f"figure_{key}": kind for key, kind in self._kinds.items()}}

    def rows(self) -> Iterator[Row]:
        """Each run, newest last."""
        for identity, values in self._figures():
            entry, standing = self._entries[identity], self._standings[identity]
            row: Row = {
                **{name: getattr(entry, name) for name in ("id", "suite", "case", "vendor", "chip", "units")},
                **{name: getattr(entry, name) for name in ("precision", "profile", "batch", "started", "commit")},
                "config_hash": entry.config_hash,
                "verdict": entry.verdict,
                "rank": standing.rank,
                "not_ranked_because": standing.why,
                "verified": "; ".join(entry.findings) or "yes",
                "signer": entry.signer,
            }
            row |= {f"variant_{name}": entry.variant.get(name) for name in self.variants}
            for key, kind in self._kinds.items():
                value = values.get(key)
                row[f"figure_{key}"] = None if value is None else kind(value)
            yield row


_ENVELOPE: dict[str, type] = {
    **dict.fromkeys(("id", "suite", "case", "vendor", "chip"), str),
    "units": int,
    **dict.fromkeys(("precision", "profile", "batch"), str),
    "started": float,
    **dict.fromkeys(("commit", "config_hash", "verdict"), str),
    "rank": int,
    **dict.fromkeys(("not_ranked_because", "verified", "signer"), str),
}


def _kind(value: float | int | str) -> type:
    return str if isinstance(value, str) else float


def export(table: Table, folder: Path, stem: str, parquet: bool) -> list[str]:
    """Write the forms that can be written; their names.

    Raises:
        OSError: no space, no permission.
    """
    columns = table.columns()
    with whole(folder / f"{stem}.csv") as draft:
        _csv(table.rows(), columns, draft)
    with whole(folder / f"{stem}.json") as draft:
        _json(table.rows(), draft)
    if parquet:
        with whole(folder / f"{stem}.parquet") as draft:
            _parquet(table.rows(), columns, draft)
    return [f"{stem}.csv", f"{stem}.json", *([f"{stem}.parquet"] if parquet else [])]


def _csv(rows: Iterable[Row], columns: Iterable[str], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([cell(name) for name in columns])
        writer.writerows([cell(row.get(name)) for name in columns] for row in rows)


def cell(value: Value) -> str:
    """A cell of CSV. A text that a spreadsheet would take for a formula begins with an apostrophe."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    shown = text.printable(value)
    return f"'{shown}" if shown.lstrip()[:1] in ("=", "+", "-", "@") or shown[:1] in ("'", "|", "%") else shown


def _json(rows: Iterable[Row], path: Path) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.write("[")
        for number, row in enumerate(rows):
            stream.write(f"{',' if number else ''}\n{json.dumps(row, ensure_ascii=False, allow_nan=False)}")
        stream.write("\n]\n")


def _parquet(rows: Iterable[Row], columns: dict[str, type], path: Path) -> None:
    arrow = importlib.import_module("pyarrow")
    kinds = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with importlib.import_module("pyarrow.parquet").ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in itertools.batched(rows, _ROWS) if hasattr(itertools, "batched") else _batched(rows):
            writer.write_table(arrow.Table.from_pylist(list(batch), schema=schema))


def _batched(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while batch := list(itertools.islice(iterator, _ROWS)):
        yield batch
