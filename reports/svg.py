"""SVG elements as strings: escaped, and coloured so that they work inline, alone, dark and in grey."""

from __future__ import annotations

import html

from reports.text import printable

INK = "currentColor"
ACCENT = "var(--accent, #1b5e9b)"
PAPER = "var(--paper, #ffffff)"

HALO = f"paint-order: stroke; stroke: {PAPER}; stroke-width: 4"
"""A style for text that stands on lines."""

FONT = "font: 12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; font-variant-numeric: tabular-nums"


def element(tag: str, content: str = "", /, **attributes: str | float) -> str:
    """An element around `content`, which is SVG already. `stroke_width=1` becomes stroke-width="1"."""
    pairs = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
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
    )


def marker(shape: str, x: float, y: float, *, filled: bool) -> str:
    """A circle or a square around a point: solid and coloured, or hollow. Told apart without colour."""
    colour = ACCENT if filled else INK
    style = f"fill: {ACCENT if filled else PAPER}; stroke: {colour}; stroke-width: 1.5"
    if shape == "circle":
        return element("circle", cx=x, cy=y, r=4, style=style)
    return element("rect", x=x - 3.6, y=y - 3.6, width=7.2, height=7.2, style=style)


def escaped(content: str) -> str:
    """Text that is safe in SVG, inline or as a file of its own."""
    return html.escape(printable(content))


def _value(value: str | float) -> str:
    return html.escape(value) if isinstance(value, str) else f"{value:.6g}"
