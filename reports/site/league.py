"""A case's league: the data of its table and its trends, and what the first page says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.content import text
from reports.content.provenance import units_of
from reports.site import history
from reports.site.entry import Cell, Entry
from reports.site.ranking import Standing


def league(entries: Sequence[Entry], standings: Mapping[str, Standing], exports: Sequence[str]) -> dict[str, Any]:
    """What the pages of a case show: columns, a row for each run (newest first), the changes of its trends."""
    columns = _columns(entries)
    variants = list(dict.fromkeys(name for entry in entries for name in entry.variant))
    return {
        "name": entries[0].name,
        "columns": [{"key": c.key, "label": c.label, "unit": c.unit, "kind": c.kind} for c in columns.values()],
        "variants": variants,
        "rows": [_row(entry, standings[entry.id], columns, variants) for entry in reversed(entries)],
        "changes": history.changes(entries),
        "exports": list(exports),
    }


def summary(entries: Sequence[Entry], standings: Mapping[str, Standing]) -> dict[str, Any]:
    """What the first page says of a case: its runs, and of each vendor the best rank or why it has none.

    The best in the usual scenario, where it has one there: in a league of few another's is soon better.
    """
    by_vendor: dict[str, list[Entry]] = {}
    for entry in reversed(entries):
        by_vendor.setdefault(entry.vendor, []).append(entry)
    return {
        "runs": len(entries),
        "newest": text.instant(max(entry.started for entry in entries)),
        "vendors": {vendor: _matrix_cell(own, standings) for vendor, own in by_vendor.items()},
    }


def _matrix_cell(newest_first: Sequence[Entry], standings: Mapping[str, Standing]) -> dict[str, Any]:
    ranked = [(standing.rank, entry) for entry in newest_first if (standing := standings[entry.id]).rank is not None]
    if ranked:
        rank, entry = min(ranked, key=lambda each: ("scenario" in each[1].variant, each[0]))
        figure = entry.cells[0]
        return {
            "id": entry.id,
            "rank": rank,
            "of": standings[entry.id].of,
            "figure": f"{figure.label} {figure.text}",
            "what": ", ".join([entry.chip, *entry.variant.values(), entry.precision]),
        }
    newest = newest_first[0]
    return {"id": newest.id, "verdict": newest.verdict, "why": standings[newest.id].why}


def _columns(entries: Sequence[Entry]) -> dict[str, Cell]:
    """A column for each headline figure of any run, as the newest run that has it calls it."""
    found: dict[str, Cell] = {}
    for entry in entries:
        for cell in entry.cells:
            found[cell.key] = cell
    return found


def _row(entry: Entry, standing: Standing, columns: Mapping[str, Cell], variants: Sequence[str]) -> dict[str, Any]:
    cells = {cell.key: cell for cell in entry.cells}
    return {
        "id": entry.id,
        "rank": standing.rank,
        "why": standing.why,
        "current": standing.current,
        "vendor": entry.vendor,
        "chip": units_of(entry.chip, entry.units),
        "variant": [entry.variant.get(name) for name in variants],
        "precision": entry.precision,
        "profile": entry.profile,
        "batch": entry.batch,
        "verdict": entry.verdict,
        "sign": entry.sign,
        "tone": entry.tone,
        "started": entry.started,
        "when": text.instant(entry.started).removesuffix(" UTC"),
        "commit": (entry.commit or "")[:8],
        "signer": entry.signer,
        "series": entry.series,
        "cells": [_cell(cells.get(key), column) for key, column in columns.items()],
    }


def _cell(cell: Cell | None, column: Cell) -> list[Any]:
    """Value, text without the unit that the column's name has, and why there is no value or how it was got."""
    if cell is None:
        return [None, text.MISSING, "not among the record's figures"]
    shown = cell.text.removesuffix(f" {column.unit}").removeprefix(f"{column.unit} ")
    return [cell.value, shown, cell.reason] if cell.reason else [cell.value, shown]
