"""Who is ranked, in which order, and why everybody else is not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proofmark.record.parts import VerdictKind
from reports.site.entry import Cell, Entry

NEVER_RANKED = "embedded"
"""The profile that shows that a tool chain is right, on small data."""


AHEAD = 86_400.0
"""Seconds by which a clock may be ahead. A contender's newest run is ranked: one of a far day would be it for good."""


@dataclass(frozen=True)
class Standing:
    """Where a run stands in the league of its case: its rank, or why it has none.

    Attributes:
        rank: from 1; equal figures share one.
        of: how many are ranked by the same figure.
        why: None where it is ranked.
        current: whether it is the ranked or the newest run of its contender.
    """

    rank: int | None
    of: int
    why: str | None
    current: bool


def standings(entries: Sequence[Entry]) -> dict[str, Standing]:
    """Where each run of a case stands, by its id.

    A contender (vendor, chip, units, variant, precision, profile, signer) has one rank: that of its newest verified run
    that passed, never that of its best one. Runs are ranked against those of their scenario that begin with the same
    figure.
    """
    newest_first = sorted(entries, key=lambda entry: (-entry.started, entry.id))
    why = {entry.id: unrankable(entry) for entry in newest_first}
    newest = _first_of_each(newest_first)
    ranked = _first_of_each(entry for entry in newest_first if why[entry.id] is None)
    for entry in newest_first:
        if why[entry.id] is None and entry.id not in ranked:
            why[entry.id] = "a newer run of the same contender is ranked"
    ranks = _ranks([entry for entry in newest_first if entry.id in ranked])
    return {
        entry.id: Standing(*ranks.get(entry.id, (None, 0)), why[entry.id], entry.id in newest | ranked)
        for entry in newest_first
    }


def unrankable(entry: Entry) -> str | None:
    """Why a run can't be ranked whatever the others did, or None."""
    if entry.verdict != VerdictKind.PASS:
        return "; ".join([entry.verdict, *entry.reasons[:1]])
    if entry.findings:
        return entry.findings[0]
    if entry.obstacles:
        return entry.obstacles[0]
    if entry.started > time.time() + AHEAD:
        return "it says of itself that it is yet to be: its machine's clock is wrong"
    if entry.profile == NEVER_RANKED:
        return f"profile {NEVER_RANKED} is never ranked"
    cell = ranked_by(entry)
    if cell is None:
        return "its record has no figure to rank it by"
    if not isinstance(cell.value, int | float):
        return f"{cell.label}: {cell.reason or 'no number'}"
    return None


def ranked_by(entry: Entry) -> Cell | None:
    """The figure that a run is ranked by: the first of its headlines."""
    return entry.cells[0] if entry.cells else None


def _first_of_each(entries: Iterable[Entry]) -> set[str]:
    first: dict[tuple[object, ...], str] = {}
    for entry in entries:
        first.setdefault(entry.contender, entry.id)
    return set(first.values())


def _ranks(entries: Sequence[Entry]) -> dict[str, tuple[int | None, int]]:
    groups: dict[tuple[str | None, ...], list[tuple[float, str]]] = {}
    for entry in entries:
        cell = ranked_by(entry)
        if cell is not None and isinstance(cell.value, int | float):
            alike = (cell.key, cell.unit, entry.profile, entry.variant.get("scenario"))
            group = groups.setdefault(alike, [])
            group.append((float(cell.value) if cell.less_is_better else -float(cell.value), entry.id))
    found: dict[str, tuple[int | None, int]] = {}
    for group in groups.values():
        group.sort()
        first = {value: position for position, (value, _) in reversed([*enumerate(group, 1)])}
        found |= {identity: (first[value], len(group)) for value, identity in group}
    return found
