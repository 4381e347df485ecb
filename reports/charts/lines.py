"""The line chart: named lines over one axis, each with its own stroke, and a legend below."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from reports.charts import svg
from reports.charts.axes import WIDTH, Area, Axis, draw_bottom, draw_left

Points = Sequence[tuple[float, float]]

Line = Sequence[tuple[float, float | None]]
"""Points, and gaps where there is no value."""

MARKS_APART = 44.0
"""Pixels at least between two marks of a line: closer ones would hide its dashes."""

LEGEND = 366
"""Pixels that the names of a legend's row share: three short ones, or two long ones."""

LONG = 11
"""Characters of a long name."""


def line_chart(
    title: str, said: str, across: Axis, up: Axis, lines: Mapping[str, Line], target: float | None = None
) -> str:
    """Lines of at least one point each, by name; `said` is for those who don't see it. `target` is a level."""
    area = Area(left=58, top=32, right=WIDTH - 24, bottom=202)
    parts = [draw_left(area, up), draw_bottom(area, across)]
    if target is not None:
        parts.append(_level(area, up, target))
    drawn = [
        [[(area.x(across, x), area.y(up, y)) for x, y in stretch] for stretch in stretches(line)]
        for line in lines.values()
    ]
    for number, line in enumerate(drawn):
        parts += [svg.stroke(number).line(stretch) for stretch in line]
    for number, line in enumerate(drawn):
        alone = [stretch[0] for stretch in line if len(stretch) == 1]  # no stroke shows it
        marks = marked(list(itertools.chain.from_iterable(line)), number / len(drawn))
        parts += [svg.stroke(number).at(x, y) for x, y in dict.fromkeys([*alone, *marks])]
    keys = 3 if max(map(len, lines)) <= LONG else 2
    below = area.bottom + 46
    for number, name in enumerate(lines):
        parts.append(_key(number, name, 40 + LEGEND / keys * (number % keys), below + 20 * (number // keys) + 6))
    return svg.drawing(WIDTH, below + 20 * -(-len(lines) // keys), title, said, *parts)


def stretches(line: Line) -> list[Points]:
    """What is known of a line, parted where there is no value."""
    parts = itertools.groupby(line, lambda point: point[1] is not None)
    return [[(x, y) for x, y in part if y is not None] for known, part in parts if known]


def marked(line: Points, shift: float) -> Points:
    """Points of a line that bear its mark: the last, and others so far apart that the line is seen between them.

    `shift` is the share of their distance by which they lie beside those of other lines, where not all have room.
    """
    if all(right[0] - left[0] >= MARKS_APART for left, right in itertools.pairwise(line)):
        return line
    kept, following = [], line[0][0] + shift * MARKS_APART
    for point in line:
        if point[0] >= following:
            kept.append(point)
            following = point[0] + MARKS_APART
    last = line[-1]
    return [point for point in kept if last[0] - point[0] >= MARKS_APART / 2] + [last]


def _key(number: int, name: str, x: float, y: float) -> str:
    """A line's stroke with its mark, and what it is called."""
    stroke = svg.stroke(number)
    return stroke.line([(x, y), (x + 34, y)]) + stroke.at(x + 17, y) + svg.label(x + 41, y + 4, name)


def _level(area: Area, up: Axis, target: float) -> str:
    y = area.y(up, target)
    return svg.line(area.left, y, area.right, y, stroke_dasharray="5 4") + svg.label(
        area.left + 6, y - 5, f"target {target:.15g}", style=svg.HALO
    )
