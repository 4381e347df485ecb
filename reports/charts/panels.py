"""Panels one below the other over one time axis: lines, a shaded window, and shaded moments."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from reports.charts import svg
from reports.charts.axes import FAINT, GLYPH, WIDTH, Area, Axis, apart, draw_bottom, draw_left, linear_axis
from reports.content import text

Point = tuple[float, float]

LEFT, RIGHT = 58, WIDTH - 102
TOP, HEIGHT, GAP, LINE = 44, 58, 32, 14
"""Pixels: above the first panel, of a panel at least, between panels, and between the names of lines."""

HIATUS = 4.0
"""A line breaks where readings lie further apart than this many times their usual distance."""


class Window(NamedTuple):
    """A stretch of time, in seconds on the axis, and what it is called."""

    begin: float
    end: float
    name: str


@dataclass(frozen=True)
class Line:
    """A named line of a panel, in stretches between which nothing is known."""

    name: str
    stretches: tuple[tuple[Point, ...], ...]
    dash: str
    colour: str
    width: float = 1.4

    @property
    def points(self) -> Iterator[Point]:
        """All of its points."""
        return itertools.chain.from_iterable(self.stretches)


@dataclass(frozen=True)
class Panel:
    """Lines over time with an axis of their own. `shown`: values that the axis includes in any case."""

    label: str
    lines: tuple[Line, ...]
    shown: tuple[float, ...]

    @property
    def height(self) -> float:
        """Pixels, enough for the names of all lines."""
        return max(HEIGHT, LINE * len(self.lines))

    @property
    def axis(self) -> Axis:
        """The vertical axis."""
        return linear_axis(self.label, [*self.shown, *(value for line in self.lines for _, value in line.points)], 3)


def draw_panels(
    panels: Sequence[Panel], across: Axis, window: Window | None, moments: Sequence[tuple[float, float]] = ()
) -> str | None:
    """The window is shaded over all panels, moments are darker; None if no panel has anything on the axis."""
    panels = list(_within(panels, across))
    if not panels:
        return None
    areas = _areas(panels)
    inner = Area(LEFT, areas[0].top, RIGHT, areas[-1].bottom)
    parts = [_shade(inner, across, window)] if window else []
    parts += [_band(inner, across, *moment, opacity=0.17) for moment in moments]
    for panel, area in zip(panels, areas, strict=True):
        parts.append(_panel(panel, area, across))
    parts.append(draw_bottom(areas[-1], across))
    return svg.drawing(WIDTH, inner.bottom + 40, "Over time", _said(panels, window), *parts)


def numbered_line(name: str, points: Sequence[Point], number: int) -> Line:
    """A line that differs from those of other numbers, in black and white too."""
    stroke = svg.stroke(number)
    return Line(name, tuple(stretches(points)), stroke.dash, stroke.colour)


def time_axis(panels: Sequence[Panel], seconds: float, focus: tuple[float, float] | None) -> Axis:
    """Seconds since the run's start: all of it, unless the focus takes so little that it could not be seen.

    Then it is the focus and as much before and after it.
    """
    moments = [moment for panel in panels for line in panel.lines for moment, _ in line.points]
    low, high = min([0.0, *moments]), max([seconds, *moments])
    if focus and focus[1] - focus[0] < (high - low) / 4:
        margin = focus[1] - focus[0]
        low, high = max(low, focus[0] - margin), min(high, focus[1] + margin)
    axis = linear_axis("seconds since the run's start", [low, high], 5)
    return replace(axis, low=low, high=high, ticks=tuple(tick for tick in axis.ticks if low <= tick[0] <= high))


def stretches(points: Sequence[Point]) -> Iterator[tuple[Point, ...]]:
    """The points, parted where readings are missing."""
    steps = [after[0] - before[0] for before, after in itertools.pairwise(points)]
    longest = HIATUS * statistics.median(steps) if steps else 0.0
    begin = 0
    for index, step in enumerate(steps, 1):
        if step > longest:
            yield tuple(points[begin:index])
            begin = index
    yield tuple(points[begin:])


def _within(panels: Sequence[Panel], across: Axis) -> Iterator[Panel]:
    """The panels without what lies beyond the time axis, or is left empty by that."""
    for panel in panels:
        lines = [_clipped(line, across) for line in panel.lines]
        if known := tuple(line for line in lines if line.stretches):
            yield replace(panel, lines=known)


def _clipped(line: Line, across: Axis) -> Line:
    kept = (tuple(p for p in stretch if across.low <= p[0] <= across.high) for stretch in line.stretches)
    return replace(line, stretches=tuple(filter(None, kept)))


def _areas(panels: Sequence[Panel]) -> list[Area]:
    areas, top = [], float(TOP)
    for panel in panels:
        areas.append(Area(LEFT, top, RIGHT, top + panel.height))
        top += panel.height + GAP
    return areas


def _shade(inner: Area, across: Axis, window: Window) -> str:
    """The window over all panels, named on top."""
    left, right = (_inside(inner, across, end) for end in window[:2])
    edges = "".join(
        svg.line(x, TOP - 24, x, inner.bottom, stroke_opacity=0.55, stroke_width=0.75) for x in (left, right)
    )
    half = GLYPH * len(window.name) / 2
    name = svg.label(min(max((left + right) / 2, half), WIDTH - half), TOP - 30, window.name, "middle")
    return _band(inner, across, window.begin, window.end, opacity=0.09) + edges + name


def _band(inner: Area, across: Axis, begin: float, end: float, opacity: float) -> str:
    left, right = (_inside(inner, across, moment) for moment in (begin, end))
    size = {"x": left, "y": TOP - 24, "width": max(1.5, right - left), "height": inner.bottom - TOP + 24}
    return svg.element("rect", **size, fill=svg.INK, fill_opacity=opacity)


def _inside(inner: Area, across: Axis, moment: float) -> float:
    return inner.x(across, min(max(moment, across.low), across.high))


def _panel(panel: Panel, area: Area, across: Axis) -> str:
    up = panel.axis
    parts = [draw_left(area, up), svg.line(area.left, area.bottom, area.right, area.bottom, stroke_opacity=2 * FAINT)]
    ends = []
    for line in panel.lines:
        drawn = [[(area.x(across, t), area.y(up, value)) for t, value in stretch] for stretch in line.stretches]
        parts += [_stroke(points, line) for points in drawn]
        ends.append(drawn[-1][-1][1])
    for line, y in zip(panel.lines, _places(ends, area), strict=True):
        x = area.right + 6
        if len(panel.lines) > 1:
            parts.append(_stroke([(x, y), (x + 22, y)], line))
            x += 26
        parts.append(svg.label(x, y + 4, line.name))
    return "".join(parts)


def _places(ends: Sequence[float], area: Area) -> list[float]:
    """Where the names of lines stand: a few beside the lines' ends, many from the top in their order."""
    if len(ends) <= 3:
        return apart(ends, LINE, area.top + 2, area.bottom)
    return [area.top + 2 + LINE * index for index in range(len(ends))]


def _stroke(points: Sequence[Point], line: Line) -> str:
    """A line through points; a single one becomes a dot."""
    if len(points) == 1:
        return svg.element("circle", cx=points[0][0], cy=points[0][1], r=1.5, style=f"fill: {line.colour}")
    return svg.polyline(points, line.colour, line.dash, line.width)


def _said(panels: Sequence[Panel], window: Window | None) -> str:
    """The range of every line in words."""
    parts = []
    if window:
        parts.append(f"{window.name}, from {text.number(window.begin)} s to {text.number(window.end)} s")
    for panel in panels:
        for line in panel.lines:
            values = [value for _, value in line.points]
            parts.append(f"{panel.label}, {line.name}: {text.number(min(values))} to {text.number(max(values))}")
    return "; ".join(parts)
