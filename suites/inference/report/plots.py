"""The plots of a case, as SVG that stands inline in a page or alone in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from proofmark.inference.reasons import SIDES
from reports import text
from reports.charts import svg
from reports.charts.axes import (
    FAINT,
    WIDTH,
    Area,
    apart,
    counting_axis,
    draw_bottom,
    draw_bound,
    draw_left,
    linear_axis,
)
from suites.inference.report.roofline import roofline_plot, why_no_roofline
from suites.inference.report.timeline import timeline_plot, unread
from suites.inference.report.view import CaseView


@dataclass(frozen=True)
class Series:
    """One line of a chart. Solid and coloured is the engine's, dashed and hollow the framework's."""

    name: str
    values: Sequence[float]
    shape: Literal["circle", "square"]
    filled: bool


def plots(view: CaseView) -> dict[str, str]:
    """Every plot for which the record has data that may be shown, by title."""
    drawn = {
        "accuracy against target": accuracy_plot(view),
        "throughput per round": throughput_plot(view),
        "over time": timeline_plot(view),
        "against the chip's limits": roofline_plot(view),
    }
    return {title: drawing for title, drawing in drawn.items() if drawing is not None}


def notes(view: CaseView) -> list[str]:
    """Why a plot is not there, or a part of one."""
    return [reason for reason in (unread(view), why_no_roofline(view)) if reason]


def accuracy_plot(view: CaseView) -> str | None:
    """Accuracies as dots, against the target (solid line) and what the engine must keep beyond it (dashed)."""
    rows = list(view.scores.items())
    if not rows:
        return None
    accuracy = view.record.accuracy
    floor = view.floor
    bounds = [accuracy.target] + ([floor] if floor is not None else [])
    axis = linear_axis(accuracy.metric, [*bounds, *(score for _, score in rows)])
    area = Area(left=118, top=40, right=WIDTH - 92, bottom=40 + 34 * len(rows))
    parts = [
        draw_bottom(area, axis),
        draw_bound(area, area.x(axis, accuracy.target), f"target {accuracy.target:g}", 12),
    ]
    if floor is not None and floor > accuracy.target:
        name = f"engine's floor {text.score(floor)}"
        parts.append(draw_bound(area, area.x(axis, floor), name, 28, stroke_dasharray="4 3"))
    for index, (who, value) in enumerate(rows):
        y = area.top + 34 * index + 17
        engine = who.startswith("engine")
        parts.append(svg.line(area.left, y, area.right, y, stroke_opacity=FAINT))
        parts.append(svg.label(0, y + 4, _short(who)))
        parts.append(svg.marker("square" if engine else "circle", area.x(axis, value), y, filled=engine))
        parts.append(_outcome(area.right + 10, y, value, accuracy.target, floor if engine else None))
    said = "; ".join([*(f"{who} {text.score(score)}" for who, score in rows), f"target {accuracy.target:g}"])
    return svg.drawing(WIDTH, area.bottom + 40, "Accuracy against target", said, *parts)


def throughput_plot(view: CaseView) -> str | None:
    """Whole and core throughput of each round, framework and engine, items per second from zero."""
    series = _round_series(view)
    if not series:
        return None
    rounds = max(len(line.values) for line in series)
    across = counting_axis("round", rounds)
    up = linear_axis(f"{view.items}/s", [0, *(value for line in series for value in line.values)])
    area = Area(left=58, top=32, right=WIDTH - 116, bottom=202)
    parts = [draw_left(area, up), draw_bottom(area, across)]
    ends = []
    for line in series:
        points = [(area.x(across, n), area.y(up, value)) for n, value in enumerate(line.values, 1)]
        parts.append(_polyline(points, line))
        ends.append(points[-1])
    places = apart([y for _, y in ends], 15, area.top, area.bottom - 4)
    for line, (x, y), place in zip(series, ends, places, strict=True):
        leader = svg.line(x + 7, y, area.right + 6, place, stroke_opacity=0.4, stroke_width=0.75)
        parts += [leader, svg.label(area.right + 10, place + 4, line.name)]
    said = "; ".join(f"{line.name} {', '.join(map(text.number, line.values))}" for line in series)
    return svg.drawing(WIDTH, area.bottom + 40, f"Throughput per round, {view.items}/s", said, *parts)


def _round_series(view: CaseView) -> list[Series]:
    shapes: tuple[tuple[Literal["whole", "core"], Literal["circle", "square"]], ...]
    shapes = (("whole", "circle"), ("core", "square"))
    found = [
        Series(f"{side} {name}", view.rounds(side, name), shape, side == "engine")
        for side in SIDES
        for name, shape in shapes
    ]
    return [series for series in found if series.values]


def _polyline(points: Sequence[tuple[float, float]], series: Series) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    colour = svg.ACCENT if series.filled else svg.INK
    dash = "" if series.filled else "; stroke-dasharray: 2 3"
    drawn = svg.element("polyline", points=path, style=f"fill: none; stroke: {colour}; stroke-width: 1.5{dash}")
    return drawn + "".join(svg.marker(series.shape, x, y, filled=series.filled) for x, y in points)


def _outcome(x: float, y: float, score: float, target: float, floor: float | None) -> str:
    """The score beside its row, and what it falls short of."""
    shown = text.score(score)
    below = "below target" if score < target else "below floor" if floor is not None and score < floor else ""
    if not below:
        return svg.label(x, y + 4, shown)
    return svg.label(x, y - 2, shown, font_weight="bold") + svg.label(x, y + 12, below)


def _short(name: str, length: int = 19) -> str:
    return name if len(name) <= length else f"{name[: length - 1]}…"
