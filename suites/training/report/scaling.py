"""How well the cases of a session scale: each scale against the smaller ones, where both took long enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from proofmark.record.comparison import Comparison
from proofmark.training.outcome.stragglers import too_short
from reports.content import text
from reports.content.view import Shown, missing
from suites.training.report.view import TrainingView

NOISE = 0.1
"""How far above its share of the smaller scale's rate one may come by noise: two rates of 5 % each."""

OF_A_STEP = ("precision", "compile", "activation_checkpointing", "channels_last")
"""Settings by which a step takes another time on one process too. What it is divided into follows from the scale."""


@dataclass(frozen=True)
class ScaleRow:
    """One scale of a case. Rates are items per second; efficiencies compare rates per process, None for the smallest.

    `against_first` compares with the smallest scale, `against_next` with the next smaller one.
    """

    view: TrainingView
    rate: float
    per_process: float
    against_first: Shown | None
    against_next: Shown | None


def scaling_rows(views: Sequence[TrainingView]) -> dict[str, list[ScaleRow]]:
    """The scales of each case that was measured at several, the smallest first, those with a speed."""
    by_case: dict[str, list[TrainingView]] = {}
    for view in views:
        if view.record.world and "raw" in view.record.rates and not view.withheld:
            by_case.setdefault(view.record.case, []).append(view)
    return {case: _rows(group) for case, group in by_case.items() if len(group) > 1}


COLUMNS = ("case, scale", "whole", "per process", "efficiency", "of the next smaller", "energy")


def scaling(views: Sequence[TrainingView]) -> list[Comparison]:
    """The same as a table, and in a line for each case; nothing where no case was measured at several scales."""
    rows, lines = list[tuple[str, ...]](), dict[str, str]()
    for case, group in scaling_rows(views).items():
        first, *others = group
        shares = [f"{row.view.record.scale} {row.against_first}" for row in others]
        lines[f"scaling, {case}"] = f"of {first.view.record.scale}'s rate per process: {', '.join(shares)}"
        rows += [_cells(case, row) for row in group]
    note = "Efficiency is the rate per process over that of the case's smallest scale here."
    return [Comparison("Scaling", COLUMNS, tuple(rows), note, lines)] if rows else []


def _cells(case: str, row: ScaleRow) -> tuple[str, ...]:
    shares = (str(share) if share else text.MISSING for share in (row.against_first, row.against_next))
    rate = f"{text.number(row.rate)} {row.view.items}/s"
    name = f"{case} {row.view.record.scale}"
    return name, rate, text.number(row.per_process), *shares, str(row.view.shown("energy_per_item"))


def _rows(group: Sequence[TrainingView]) -> list[ScaleRow]:
    rows: list[ScaleRow] = []
    for view in sorted(group, key=lambda view: (_world(view), view.record.nnodes or 0)):
        smaller = [row.view for row in rows if _world(row.view) < _world(view)]
        first = efficiency(view, rows[0].view) if rows else None
        following = efficiency(view, smaller[-1]) if smaller else None
        rows.append(ScaleRow(view, _rate(view), _rate(view) / _world(view), first, following))
    return rows


def efficiency(view: TrainingView, other: TrainingView) -> Shown:
    """A scale's rate per process as a share of a smaller one's; none if they compute otherwise, if either is too short,
    or if it cannot be."""
    ours, theirs = view.record.config, other.record.config
    if differing := [key for key in OF_A_STEP if ours.get(key) != theirs.get(key)]:
        return missing(f"{view.record.scale} and {other.record.scale} differ in {', '.join(differing)}")
    for each in (other, view):
        short = too_short(each.record.runs)
        if short:
            return missing(f"{each.record.scale}: {short}")
    share = _rate(view) / _world(view) / (_rate(other) / _world(other))
    most = 1 + max(NOISE, 2 * math.hypot(_deviation(view), _deviation(other)))
    if share > most and _world(view) > _world(other):
        scales = f"{view.record.scale} or {other.record.scale}"
        return missing(f"above {most:.0%}, which no process can be by noise: {scales} was not measured alone")
    return Shown(text.percent(share), share)


def _rate(view: TrainingView) -> float:
    return view.record.rates["raw"].value


def _deviation(view: TrainingView) -> float:
    """Of the rates of the runs, as a share of their mean."""
    spread = view.record.rates["raw"]
    return (spread.stdev or 0.0) / spread.value


def _world(view: TrainingView) -> int:
    return view.record.world or 1
