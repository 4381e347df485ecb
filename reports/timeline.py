"""What happened when: readings and rounds over one time axis, one panel below the other."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.record import Series
from reports import svg, text
from reports.axes import FAINT, GLYPH, WIDTH, Area, Axis, apart, draw_bottom, draw_left, linear_axis
from reports.view import SIDES, CaseView

Point = tuple[float, float]

LEFT, RIGHT = 58, WIDTH - 102
TOP, HEIGHT, GAP, LINE = 44, 58, 32, 14
"""Pixels: above the first panel, of a panel at least, between panels, and between the names of lines."""

DASHES = ("none", "7 3", "2 3", "9 3 2 3", "14 4", "5 6", "12 3 2 3 2 3", "1 5")

HIATUS = 4.0
"""A line breaks where readings lie further apart than this many times their usual distance."""


class _Subject(NamedTuple):
    """What a panel shows: the first of these series that was read, each with the panel's label."""

    name: str
    series: dict[str, str]
    factor: float = 1.0
    shown: tuple[float, ...] = (0.0,)


_SUBJECTS = (
    _Subject("utilisation", {"utilisation": "device utilisation, %", "host CPU": "host CPU, %"}, 100.0, (0.0, 100.0)),
    _Subject("power", {"power": "power, W"}),
    _Subject("temperature", {"temperature": "temperature, °C"}, shown=()),
    _Subject("memory", {"memory": "device memory, GiB", "host memory": "host memory, GiB"}, 2.0**-30),
)


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


def timeline_plot(view: CaseView) -> str | None:
    """Throughput, utilisation, power, temperature and memory as far as they were read; the timed window shaded."""
    if view.record.monitoring is None or not view.record.monitoring.series:
        return None
    panels = list(_panels(view))
    across = _time_axis(view, panels)
    panels = list(_within(panels, across))
    areas = _areas(panels)
    inner = Area(LEFT, areas[0].top, RIGHT, areas[-1].bottom)
    parts = [_shade(inner, across, view.window)] if view.window else []
    for panel, area in zip(panels, areas, strict=True):
        parts.append(_panel(panel, area, across))
    parts.append(draw_bottom(areas[-1], across))
    return svg.drawing(WIDTH, inner.bottom + 40, "Over time", _said(panels, view.window), *parts)


def unread(view: CaseView) -> str | None:
    """A sentence on what nobody read, so that an absent panel is not taken for a zero; None if all was read."""
    if view.record.monitoring is None:
        return "Nothing over time: there was no monitor."
    names = {series.name for series in view.record.monitoring.series}
    absent = [subject.name for subject in _SUBJECTS if not names & subject.series.keys()]
    sentences = [f"No reading of {' or '.join(absent)}."] if absent else []
    if view.withheld:
        sentences.append(f"Throughput and timed window {view.withheld}.")
    return " ".join(sentences) or None


def _panels(view: CaseView) -> Iterator[Panel]:
    rounds = tuple(filter(None, (_round_line(view, side) for side in SIDES)))
    if rounds:
        yield Panel(f"throughput, {view.items}/s", rounds, (0.0,))
    recorded = view.record.monitoring.series if view.record.monitoring else ()
    for subject in _SUBJECTS:
        for name, label in subject.series.items():
            found = [series for series in recorded if series.name == name and series.times]
            if found:
                lines = [_reading_line(view, series, n, subject.factor) for n, series in enumerate(found)]
                yield Panel(label, tuple(lines), subject.shown)
                break


def _round_line(view: CaseView, side: str) -> Line | None:
    """A level per round, as long as the round took."""
    spans = view.spans("engine" if side == "engine" else "framework")
    levels = tuple(((begin, rate), (end, rate)) for begin, end, rate in spans)
    engine = side == "engine"
    return Line(side, levels, "none" if engine else "2 2", svg.ACCENT if engine else svg.INK, 3) if levels else None


def _reading_line(view: CaseView, series: Series, number: int, factor: float) -> Line:
    begin = view.record.started
    points = [(moment - begin, factor * value) for moment, value in zip(series.times, series.values, strict=False)]
    name = "host" if series.device is None else f"device {series.device}"
    colour = svg.ACCENT if number % 2 == 0 else svg.INK
    return Line(name, tuple(_stretches(points)), DASHES[number % len(DASHES)], colour)


def _stretches(points: Sequence[Point]) -> Iterator[tuple[Point, ...]]:
    """The points, parted where readings are missing."""
    steps = [after[0] - before[0] for before, after in itertools.pairwise(points)]
    longest = HIATUS * statistics.median(steps) if steps else 0.0
    begin = 0
    for index, step in enumerate(steps, 1):
        if step > longest:
            yield tuple(points[begin:index])
            begin = index
    yield tuple(points[begin:])


def _time_axis(view: CaseView, panels: Sequence[Panel]) -> Axis:
    """Seconds since the run's start: all of it, unless the rounds take so little that they could not be seen.

    Then it is the rounds and as much before and after them.
    """
    moments = [moment for panel in panels for line in panel.lines for moment, _ in line.points]
    low, high = min(0.0, *moments), max(view.record.seconds, *moments)
    timed = [moment for side in SIDES for span in view.spans(side) for moment in span[:2]]
    if timed and max(timed) - min(timed) < (high - low) / 4:
        margin = max(timed) - min(timed)
        low, high = max(low, min(timed) - margin), min(high, max(timed) + margin)
    axis = linear_axis("seconds since the run's start", [low, high], 5)
    return replace(axis, low=low, high=high, ticks=tuple(tick for tick in axis.ticks if low <= tick[0] <= high))


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


def _shade(inner: Area, across: Axis, window: tuple[float, float]) -> str:
    """The timed window over all panels, named on top."""
    left, right = (inner.x(across, min(max(end, across.low), across.high)) for end in window)
    band = svg.element(
        "rect",
        x=left,
        y=TOP - 24,
        width=max(1.5, right - left),
        height=inner.bottom - TOP + 24,
        fill=svg.INK,
        fill_opacity=0.09,
    )
    edges = "".join(
        svg.line(x, TOP - 24, x, inner.bottom, stroke_opacity=0.55, stroke_width=0.75) for x in (left, right)
    )
    name = f"timed window, {text.number(window[1] - window[0], 3)} s"
    half = GLYPH * len(name) / 2
    return band + edges + svg.label(min(max((left + right) / 2, half), WIDTH - half), TOP - 30, name, "middle")


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
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    style = f"fill: none; stroke: {line.colour}; stroke-width: {line.width:g}; stroke-dasharray: {line.dash}"
    return svg.element("polyline", points=path, style=style)


def _said(panels: Sequence[Panel], window: tuple[float, float] | None) -> str:
    """The range of every line in words."""
    parts = [f"timed window from {text.number(window[0])} s to {text.number(window[1])} s"] if window else []
    for panel in panels:
        for line in panel.lines:
            values = [value for _, value in line.points]
            parts.append(f"{panel.label}, {line.name}: {text.number(min(values))} to {text.number(max(values))}")
    return "; ".join(parts)
