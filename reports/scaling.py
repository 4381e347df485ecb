"""How well the cases of a session scale: each scale against the smaller ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.training import TrainingView


@dataclass(frozen=True)
class ScaleRow:
    """One scale of a case. Rates are items per second; efficiencies compare rates per process, None for the smallest.

    `against_first` compares with the smallest scale, `against_next` with the next smaller one.
    """

    view: TrainingView
    rate: float
    per_process: float
    against_first: float | None
    against_next: float | None


def scaling_rows(views: Sequence[TrainingView]) -> dict[str, list[ScaleRow]]:
    """The scales of each case that was measured at several, the smallest first, those with a speed."""
    by_case: dict[str, list[TrainingView]] = {}
    for view in views:
        if view.record.world and "raw" in view.record.rates and not view.withheld:
            by_case.setdefault(view.record.case, []).append(view)
    return {case: _rows(group) for case, group in by_case.items() if len(group) > 1}


def scaling(views: Sequence[TrainingView]) -> dict[str, str]:
    """The same in a line for each case."""
    told = {}
    for case, (first, *others) in scaling_rows(views).items():
        shares = [f"{row.view.record.scale} {row.against_first or 0.0:.0%}" for row in others]
        told[case] = f"of {first.view.record.scale}'s rate per process: {', '.join(shares)}"
    return told


def _rows(group: Sequence[TrainingView]) -> list[ScaleRow]:
    rows: list[ScaleRow] = []
    for view in sorted(group, key=lambda view: (_world(view), view.record.nnodes or 0)):
        rate = view.record.rates["raw"].mean
        each = rate / _world(view)
        smaller = [row for row in rows if _world(row.view) < _world(view)]
        first = each / rows[0].per_process if rows else None
        rows.append(ScaleRow(view, rate, each, first, each / smaller[-1].per_process if smaller else None))
    return rows


def _world(view: TrainingView) -> int:
    return view.record.world or 1
