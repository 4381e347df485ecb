"""Axes: from data to pixels, with round ticks. Every plot draws on these."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from reports.charts import svg

FAINT = 0.15

LARGEST = 1e300
"""What is beyond it is drawn at the edge; what is within one part of it is 0."""

WIDTH = 400
"""Pixels of every drawing: what a phone shows without making its letters too small."""

ROOM = 8
"""Characters of a tick's name for which there is room beside a vertical axis."""

PREFIXES = " kMGTPEZY"
"""Prefixes of a thousand to the power of 0, 1, ..."""

GLYPH = 6.5
"""Pixels that a character takes, about: what is left of measuring text without a renderer."""


@dataclass(frozen=True)
class Axis:
    """A range of data with its ticks. `transform` is applied to data first: math.log10 for decades."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    transform: Callable[[float], float] = float

    @cached_property
    def _halves(self) -> tuple[float, float]:
        """Half of where it begins, and of how long it is: the whole may be more than a float."""
        low, high = self.transform(self.low), self.transform(self.high)
        return low / 2, high / 2 - low / 2

    def share(self, value: float) -> float:
        """How far along the axis a value lies: 0 at `low`, 1 at `high`."""
        low, span = self._halves
        share = (self.transform(value) / 2 - low) / span if span else 0.5
        return max(-1e6, min(1e6, share))  # no renderer draws beyond


@dataclass(frozen=True)
class Area:
    """The rectangle that data is drawn in, in pixels from the drawing's top left corner."""

    left: float
    top: float
    right: float
    bottom: float

    def x(self, axis: Axis, value: float) -> float:
        """The horizontal pixel of a value."""
        return self.left + axis.share(value) * (self.right - self.left)

    def y(self, axis: Axis, value: float) -> float:
        """The vertical pixel of a value; larger values are higher up."""
        return self.bottom - axis.share(value) * (self.bottom - self.top)


def linear_axis(label: str, values: Sequence[float], count: int = 4) -> Axis:
    """An axis from and to round numbers around all of at least one value, with about `count` steps."""
    low, high = _far_enough_apart(min(values), max(values))
    step = _round_step((high - low) / count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    decimals = -math.floor(math.log10(step) + 1e-9)
    if abs(step * 10.0**decimals - round(step * 10.0**decimals)) > 1e-6:
        decimals += 1
    values = [index * step for index in range(first, last + 1)]
    return Axis(label, values[0], values[-1], tuple(zip(values, _named(values, decimals), strict=True)))


def _named(values: Sequence[float], decimals: int) -> list[str]:
    """What ticks are called: in full, or where there is no room for that with a prefix or a power of ten."""
    full = [f"{value:,.{max(0, decimals)}f}" for value in values]
    if max(map(len, full)) <= ROOM:
        return full
    power = 3 * math.floor(math.log10(max(map(abs, values))) / 3 + 1e-9)
    unit = f" {PREFIXES[power // 3]}" if 0 <= power < 3 * len(PREFIXES) else f"e{power}"
    shares = (f"{value / 10.0**power:.{max(0, decimals + power)}f}" for value in values)
    short = [f"{share}{unit}" if value else "0" for value, share in zip(values, shares, strict=True)]
    return min(full, short, key=lambda names: max(map(len, names)))


def _far_enough_apart(low: float, high: float) -> tuple[float, float]:
    """A range that can be divided into steps: not empty, nor beyond what floats can tell apart."""
    low, high = max(low, -LARGEST), min(high, LARGEST)
    size = max(abs(low), abs(high))
    if high - low > 1e-12 * size and high - low > 1 / LARGEST:
        return low, high
    return (0.0, 1.0) if size < 1 / LARGEST else (low - size * 0.01, high + size * 0.01)


def counting_axis(label: str, count: int) -> Axis:
    """An axis for the whole numbers 1 to `count`, with half a place to spare on both sides, and 8 ticks at most."""
    every = math.ceil(count / 8)
    return Axis(label, 0.5, count + 0.5, tuple((n, str(n)) for n in range(1, count + 1, every)))


def decade_axis(label: str, low: float, high: float) -> Axis:
    """A logarithmic axis between two positive values, with ticks at powers of ten, about 6 of them at most."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / 6))
    ticks = tuple((10.0**n, power_of_ten(n)) for n in range(first, last + 1, every))
    return Axis(label, low, high, ticks, math.log10)


def power_of_ten(exponent: int) -> str:
    """10 to a whole exponent, with a prefix where it is large: 100 G, 1 T, 0.01."""
    if exponent < 3:
        return f"{10.0**exponent:g}"
    if exponent < 3 * len(PREFIXES):
        return f"{10 ** (exponent % 3)} {PREFIXES[exponent // 3]}"
    return f"1e{exponent}"


def draw_bottom(area: Area, axis: Axis) -> str:
    """The horizontal axis below the area: base line, ticks, tick labels, and the axis's label."""
    parts = [svg.line(area.left, area.bottom, area.right, area.bottom)]
    for value, name in axis.ticks:
        x = area.x(axis, value)
        parts += [svg.line(x, area.bottom, x, area.bottom + 4), svg.label(x, area.bottom + 17, name, "middle")]
    parts.append(svg.label((area.left + area.right) / 2, area.bottom + 33, axis.label, "middle"))
    return "".join(parts)


def draw_left(area: Area, axis: Axis) -> str:
    """The vertical axis: faint lines across the area, tick labels, and the axis's label on top."""
    parts = [svg.label(0, area.top - 12, axis.label)]
    for value, name in axis.ticks:
        y = area.y(axis, value)
        parts.append(svg.line(area.left, y, area.right, y, stroke_opacity=FAINT))
        parts.append(svg.label(area.left - 6, y + 4, name, "end"))
    return "".join(parts)


def draw_bound(area: Area, x: float, name: str, baseline: float, **attributes: str | float) -> str:
    """A vertical line through the area up to its name, which stands right of it where there is room."""
    anchor, shift = ("start", 5) if x + 5 + GLYPH * len(name) <= WIDTH else ("end", -5)
    stroke = svg.line(x, baseline - 9, x, area.bottom, stroke_width=1.25, **attributes)
    return stroke + svg.label(x + shift, baseline, name, anchor, style=svg.HALO)


def apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """`places` moved as little as need be to lie `gap` apart between `low` and `high`, in their order."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    floor = low
    for index in order:
        moved[index] = floor = max(moved[index], floor)
        floor += gap
    ceiling = high
    for index in reversed(order):
        moved[index] = ceiling = min(moved[index], ceiling)
        ceiling -= gap
    return moved


def _round_step(step: float) -> float:
    """The smallest of 1, 2, 2.5, 5 and 10 times a power of ten that is at least `step`."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= step * (1 - 1e-9))
