"""SVG elements as strings: escaped, and coloured so that they work inline, alone, dark and in grey."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from reports.content.text import printable

INK = "currentColor"
ACCENT = "var(--accent, #1b5e9b)"
PAPER = "var(--paper, #ffffff)"

HALO = f"paint-order: stroke; stroke: {PAPER}; stroke-width: 4"
"""A style for text that stands on lines."""

BROAD = 600
"""Pixels from which a drawing has the whole width of a page to itself."""

FONT = "font: 12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; font-variant-numeric: tabular-nums"


def element(tag: str, content: str = "", /, **attributes: str | float) -> str:
    """An element around `content`, which is SVG already. `stroke_width=1` becomes stroke-width="1"."""
    pairs = "".join([f' {_name(key)}="{_value(value)}"' for key, value in attributes.items()])
    return f"<{tag}{pairs}>{content}</{tag}>" if content else f"<{tag}{pairs}/>"


def label(x: float, y: float, content: str, anchor: str = "start", **attributes: str | float) -> str:
    """Text at a baseline point in pixels; `content` is escaped."""
    return element("text", escaped(content), x=x, y=y, text_anchor=anchor, fill=INK, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: str | float) -> str:
    """A stroke in ink between two points in pixels."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=INK, **attributes)


def drawing(width: float, height: float, title: str, description: str, *parts: str) -> str:
    """A complete drawing that scales with its container, with a text for those who don't see it."""
    head = element("title", escaped(title)) + element("desc", escaped(description))
    return element(
        "svg",
        head + "".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        style=f"{FONT}; max-width: {1.2 * width:g}px",
        **({"class_": "broad"} if width > BROAD else {}),
    )


def polyline(points: Sequence[tuple[float, float]], colour: str, dash: str, width: float) -> str:
    """A line through points in pixels."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    style = f"fill: none; stroke: {colour}; stroke-width: {width:g}; stroke-dasharray: {dash}"
    return element("polyline", points=path, style=style)


def marker(shape: str, x: float, y: float, *, filled: bool) -> str:
    """A circle or a square around a point: solid and coloured, or hollow. Told apart without colour."""
    colour = ACCENT if filled else INK
    style = f"fill: {ACCENT if filled else PAPER}; stroke: {colour}; stroke-width: 1.5"
    if shape == "circle":
        return element("circle", cx=x, cy=y, r=4, style=style)
    return element("rect", x=x - 3.6, y=y - 3.6, width=7.2, height=7.2, style=style)


@dataclass(frozen=True)
class Stroke:
    """How one of several lines is drawn: told apart by its colour, its dashes and its marks, each of them alone."""

    colour: str
    dash: str
    mark: str

    def line(self, points: Sequence[tuple[float, float]], width: float = 1.5) -> str:
        """A line through points in pixels."""
        return polyline(points, self.colour, self.dash, width)

    def at(self, x: float, y: float) -> str:
        """The mark around a point, hollow, so that others below it are seen."""
        style = f"fill: {PAPER}; stroke: {self.colour}; stroke-width: 1.6"
        if self.mark == "circle":
            return element("circle", cx=x, cy=y, r=3.6, style=style)
        return element("path", d=f"M {x:.1f} {y:.1f} {_MARKS[self.mark]}", style=style)


_MARKS = {
    "square": "m -3.3 -3.3 h 6.6 v 6.6 h -6.6 z",
    "triangle": "m 0 -4.6 l 4.3 7.6 h -8.6 z",
    "diamond": "m 0 -4.9 l 4.5 4.9 l -4.5 4.9 l -4.5 -4.9 z",
    "cross": "m -3.4 -3.4 l 6.8 6.8 m 0 -6.8 l -6.8 6.8",
}
MARKS = ("circle", *_MARKS)
DASHES = ("none", "7 3", "2 3", "9 3 2 3", "14 4", "5 6", "12 3 2 3 2 3", "1 5")
HUES = ("#0060a8", "#c44e00", "#00785a", "#a8327a", "#7a5c00", "#4d4d4d")
"""Told apart by the colour-blind too (after Okabe and Ito, dark enough for thin lines on white)."""


def stroke(number: int) -> Stroke:
    """The number's own stroke. A page may set others of the colours, for its dark paper."""
    hue = number % len(HUES)
    return Stroke(f"var(--hue-{hue}, {HUES[hue]})", DASHES[number % len(DASHES)], MARKS[number % len(MARKS)])


def escaped(content: str) -> str:
    """Text that is safe in SVG, inline or as a file of its own."""
    return html.escape(printable(content))


@lru_cache(maxsize=256)
def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    return _attribute(value) if isinstance(value, str) else f"{value:.6g}"


@lru_cache(maxsize=1024)
def _attribute(value: str) -> str:
    """Escaped; most are styles, of which there are few."""
    return html.escape(value)
