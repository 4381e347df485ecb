"""The curves of a search, as inline SVG."""

from __future__ import annotations

from collections.abc import Mapping

from reports.charts.axes import linear_axis
from reports.charts.lines import Line, line_chart
from reports.content import text
from suites.automl.report.view import SearchView

MINUTES, HOURS = 120.0, 3 * 3600.0
"""Seconds from which a search is drawn over minutes, and over hours."""

CHOSEN = "on data that trials are chosen by"
"""The figures of the whole search go by held-out data, on which the best network alone is judged, in the end."""

SCALES = ((1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))


def curves(view: SearchView) -> dict[str, str]:
    """Error, score and regulated score over time, by title; those for which there are figures that may be shown."""
    marks = view.record.marks
    drawn = {
        "error over time": _drawn(
            f"error {CHOSEN}, %", {"best trial so far": [(m.seconds, _percent(m.error)) for m in marks]}
        )
    }
    for title, field in (("score over time", "score"), ("regulated score over time", "regulated")):
        values = [value for mark in marks if (value := getattr(mark, field)) is not None]
        if values:
            scale, unit = _scale(max(values))
            line = [(m.seconds, None if (v := getattr(m, field)) is None else v / scale) for m in marks]
            label = f"{unit}, by the error {CHOSEN}" if field == "regulated" else unit
            drawn[title] = _drawn(label, {title.removesuffix(" over time"): line})
    return {title: drawing for title, drawing in drawn.items() if drawing is not None}


def _percent(error: float | None) -> float | None:
    return None if error is None else 100 * error


def _scale(most: float) -> tuple[float, str]:
    return next(((scale, unit) for scale, unit in SCALES if most >= scale), (1.0, "FLOP/s"))


def _drawn(label: str, lines: Mapping[str, Line]) -> str | None:
    seconds = max((x for line in lines.values() for x, _ in line), default=0.0)
    step, unit = (
        (3600.0, "hours") if seconds >= HOURS else (60.0, "minutes") if seconds >= MINUTES else (1.0, "seconds")
    )
    lines = {name: [(x / step, y) for x, y in line] for name, line in lines.items()}
    points = {name: [(x, y) for x, y in line if y is not None] for name, line in lines.items()}
    points = {name: line for name, line in points.items() if line}
    if not points:
        return None
    every = [point for line in points.values() for point in line]
    across = linear_axis(unit, [0, *(x for x, _ in every)])
    up = linear_axis(label, [0, *(y for _, y in every)])
    said = "; ".join(f"{name}: {text.number(line[-1][1])} {label} in the end" for name, line in points.items())
    return line_chart(f"{label} over {unit}", said, across, up, {name: lines[name] for name in points})
