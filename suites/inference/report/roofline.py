"""The measured FLOP/s against what the chip could do at best.

A roofline needs the bytes that were moved, and nobody counted them. What is known for certain is how fast the case
was and how fast memory is: the intensity is at least their quotient. So the measured performance is a level that
begins at the memory's roof, not a point; and where the memory's speed is unknown, a mark on a scale.
"""

from __future__ import annotations

from typing import NamedTuple

from proofmark.record.provenance import Peak
from reports.charts import svg
from reports.charts.axes import WIDTH, Area, Axis, apart, decade_axis, draw_bottom, draw_bound, draw_left
from reports.content import text
from suites.inference.report.view import CaseView


class _Limits(NamedTuple):
    measured: float
    share: str
    peak: Peak


def roofline_plot(view: CaseView) -> str | None:
    """A roofline, or a scale of FLOP/s where memory bandwidth is unknown; None without a peak or a valid speed."""
    limits = _limits(view)
    if limits is None:
        return None
    bandwidth = view.record.chip.memory_bandwidth
    return _roofline(limits, bandwidth) if bandwidth else _scale(limits)


def why_no_roofline(view: CaseView) -> str | None:
    """A sentence on why there is no roofline, or none with a memory roof."""
    if _limits(view) is None:
        mfu = view.shown("mfu")
        return f"No roofline: {mfu.reason or mfu.text}."
    if view.record.chip.memory_bandwidth is None:
        return f"No memory roof: the memory bandwidth of {view.record.chip.name} is not known."
    return "Bytes moved were not counted: the case lies somewhere on the measured level."


def _limits(view: CaseView) -> _Limits | None:
    peak, mfu = view.record.chip.peak, view.shown("mfu")
    if peak is None or not isinstance(mfu.value, float) or mfu.value <= 0:
        return None
    return _Limits(mfu.value * peak.flops_per_second, mfu.text, peak)


def _ceilings(peak: Peak) -> list[tuple[float, str, str]]:
    """FLOP/s, name and dash of the peak and, if it was measured, of what is achievable."""
    ceilings = [(peak.flops_per_second, f"{peak.precision} dense peak", "none")]
    if peak.achievable:
        ceilings.append((peak.achievable, "achievable", "5 3"))
    return [(value, f"{name} {text.scaled(value, 'FLOP/s')}", dash) for value, name, dash in ceilings]


def _measured(limits: _Limits) -> str:
    return f"measured {text.scaled(limits.measured, 'FLOP/s')}, {limits.share}"


def _roofline(limits: _Limits, bandwidth: float) -> str:
    least, ridge = limits.measured / bandwidth, limits.peak.flops_per_second / bandwidth
    across = decade_axis("FLOP per byte of memory traffic", least / 8, ridge * 30)
    up = decade_axis("FLOP/s", limits.measured / 8, limits.peak.flops_per_second * 2.5)
    area = Area(left=58, top=32, right=WIDTH - 8, bottom=232)
    parts = [draw_left(area, up), draw_bottom(area, across)]
    for value, _, dash in _ceilings(limits.peak):
        parts.append(_level(area, across, up, value, value / bandwidth, stroke_width=1.5, stroke_dasharray=dash))
    foot = max(across.low, up.low / bandwidth)
    ends = [(area.x(across, x), area.y(up, x * bandwidth)) for x in (foot, ridge)]
    parts.append(svg.line(*ends[0], *ends[1], stroke_width=1.5))
    roof = f"memory {text.scaled(bandwidth, 'B/s')}"
    parts.append(svg.label(area.x(across, foot) + 22, area.bottom - 8, roof, style=svg.HALO))
    parts.append(_level(area, across, up, limits.measured, least, style=f"stroke: {svg.ACCENT}", stroke_width=3.5))
    parts += _names(area, up, limits)
    said = [_measured(limits), roof, *(name for _, name, _ in _ceilings(limits.peak))]
    said.append(f"at least {text.number(least, 3)} FLOP per byte")
    return svg.drawing(WIDTH, area.bottom + 40, "Roofline", "; ".join(said), *parts)


def _names(area: Area, up: Axis, limits: _Limits) -> list[str]:
    """What the levels are: the peak's name above it, the others below theirs, none on another."""
    levels = [(value, name, "normal") for value, name, _ in _ceilings(limits.peak)]
    levels.append((limits.measured, _measured(limits), "bold"))
    wanted = [area.y(up, value) + (17 if index else -7) for index, (value, _, _) in enumerate(levels)]
    places = apart(wanted, 16, area.top, area.bottom - 24)
    return [
        svg.label(area.right, place, name, "end", font_weight=weight, style=svg.HALO)
        for place, (_, name, weight) in zip(places, levels, strict=True)
    ]


def _level(area: Area, across: Axis, up: Axis, value: float, begin: float, **attributes: str | float) -> str:
    """A horizontal line from `begin` to the right end."""
    y = area.y(up, value)
    return svg.line(area.x(across, begin), y, area.right, y, **attributes)


def _scale(limits: _Limits) -> str:
    ceilings = _ceilings(limits.peak)
    top = 16 + 16 * len(ceilings)
    area = Area(left=12, top=top, right=WIDTH - 12, bottom=top + 44)
    low = min(limits.measured, *(value for value, _, _ in ceilings))
    across = decade_axis("FLOP/s", low / 12, limits.peak.flops_per_second * 2)
    parts = [draw_bottom(area, across)]
    for index, (value, name, dash) in enumerate(ceilings):
        parts.append(draw_bound(area, area.x(across, value), name, 12 + 16 * index, stroke_dasharray=dash))
    x, y = area.x(across, limits.measured), top + 26
    parts.append(svg.line(area.left, y, x, y, style=f"stroke: {svg.ACCENT}", stroke_width=3.5))
    parts.append(svg.marker("square", x, y, filled=True))
    parts.append(svg.label(area.left, y - 12, _measured(limits), font_weight="bold", style=svg.HALO))
    said = "; ".join([_measured(limits), *(name for _, name, _ in ceilings)])
    return svg.drawing(WIDTH, area.bottom + 40, "FLOP/s against the chip's limits", said, *parts)
