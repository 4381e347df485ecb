"""The plots of a case, as SVG that stands inline in a page or alone in a file."""

from __future__ import annotations

from typing import Literal

from proofmark.inference.outcome.reasons import SIDES
from proofmark.inference.outcome.record import Accuracy
from proofmark.rules.aims import reaches, wrong_side
from reports.charts import svg
from reports.charts.axes import FAINT, WIDTH, Area, counting_axis, draw_bottom, draw_bound, linear_axis
from reports.charts.lines import line_chart
from reports.content import text
from suites.inference.report.roofline import roofline_plot, why_no_roofline
from suites.inference.report.timeline import timeline_plot, unread
from suites.inference.report.view import CaseView


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
        draw_bound(area, area.x(axis, accuracy.target), f"target {accuracy.target:.15g}", 12),
    ]
    if floor is not None and not reaches(accuracy.target, floor, accuracy.better):
        name = f"engine's floor {text.score(floor)}"
        parts.append(draw_bound(area, area.x(axis, floor), name, 28, stroke_dasharray="4 3"))
    for index, (who, value) in enumerate(rows):
        y = area.top + 34 * index + 17
        engine = who.startswith("engine")
        parts.append(svg.line(area.left, y, area.right, y, stroke_opacity=FAINT))
        parts.append(svg.label(0, y + 4, _short(who)))
        parts.append(svg.marker("square" if engine else "circle", area.x(axis, value), y, filled=engine))
        parts.append(_outcome(area.right + 10, y, value, accuracy, floor if engine else None))
    said = "; ".join([*(f"{who} {text.score(score)}" for who, score in rows), f"target {accuracy.target:.15g}"])
    return svg.drawing(WIDTH, area.bottom + 40, "Accuracy against target", said, *parts)


def throughput_plot(view: CaseView) -> str | None:
    """Whole and core throughput of each round, framework and engine, items per second from zero."""
    names: tuple[Literal["whole", "core"], ...] = ("whole", "core")
    rounds = {f"{side} {name}": view.rounds(side, name) for side in SIDES for name in names}
    lines = {name: list(enumerate(values, 1)) for name, values in rounds.items() if values}
    if not lines:
        return None
    across = counting_axis("round", max(map(len, lines.values())))
    up = linear_axis(f"{view.items}/s", [0, *(value for line in lines.values() for _, value in line)])
    said = "; ".join(f"{name} {', '.join(map(text.number, rounds[name]))}" for name in lines)
    return line_chart(f"Throughput per round, {view.items}/s", said, across, up, lines)


def _outcome(x: float, y: float, value: float, of: Accuracy, floor: float | None) -> str:
    """The score beside its row, and what it falls short of."""
    shown, off = text.score(value), wrong_side(of.better)
    kept = floor is None or reaches(value, floor, of.better)
    missed = "" if of.aim.reached(value) and kept else f"{off} {'floor' if of.aim.reached(value) else 'target'}"
    if not missed:
        return svg.label(x, y + 4, shown)
    return svg.label(x, y - 2, shown, font_weight="bold") + svg.label(x, y + 12, missed)


def _short(name: str) -> str:
    return name if len(name) <= 19 else f"{name[:18]}…"
