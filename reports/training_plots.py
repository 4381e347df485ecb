"""The plots of a training record, as inline SVG."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from harness.training.record import SeedRun, Split
from reports import svg, text
from reports.axes import WIDTH, Area, Axis, apart, draw_bottom, draw_left, linear_axis
from reports.training import TrainingView, seed

Points = Sequence[tuple[float, float]]

DASHES = ("none", "7 3", "2 3", "9 3 2 3", "14 4")
"""Lines of different seeds, told apart in black and white too."""

PARTS = {"init": 0.15, "data": 0.3, "compute": 1.0, "evaluation": 0.55, "checkpoint": 0.75, "other": 0.05}
"""Parts of a run's time in their order, with the opacity of their stretch."""


def training_plots(view: TrainingView) -> dict[str, str]:
    """Every plot for which the record has data, by title."""
    metric, unit = view.record.metric, f"{view.items} trained on"
    metrics = {seed(run): [(e.samples, e.metric) for e in run.evaluations] for run in view.record.runs}
    losses = {seed(run): _by_samples(run) for run in view.record.runs}
    drawn = {
        f"{metric} against target": _curves(metric, unit, metrics, view.record.target, markers=True),
        "loss": _curves("loss", unit, losses, None, markers=False),
        "where the time went": _splits(view),
    }
    return {title: drawing for title, drawing in drawn.items() if drawing is not None}


def _by_samples(run: SeedRun) -> list[tuple[float, float | None]]:
    """The loss over samples, since steps of two scales mean different things."""
    each = run.samples / run.steps if run.samples and run.steps else 0.0
    return [(step * each, loss) for step, loss in run.losses]


def _curves(
    label: str,
    unit: str,
    lines: Mapping[str, Sequence[tuple[float, float | None]]],
    target: float | None,
    markers: bool,
) -> str | None:
    """Lines over samples; a value that was no number leaves a gap."""
    points = {name: [(x, y) for x, y in line if y is not None] for name, line in lines.items()}
    points = {name: line for name, line in points.items() if line}
    if not points:
        return None
    everything = list(itertools.chain.from_iterable(points.values()))
    across = linear_axis(unit, [0, *(x for x, _ in everything)])
    up = linear_axis(label, [y for _, y in everything] + ([target] if target is not None else []))
    area = Area(left=58, top=32, right=WIDTH - 102, bottom=202)
    parts = [draw_left(area, up), draw_bottom(area, across)]
    if target is not None:
        parts.append(_level(area, up, target))
    ends = [area.y(up, line[-1][1]) for line in points.values()]
    places = apart(ends, 15, area.top, area.bottom - 4)
    for (name, line), dash, place in zip(points.items(), itertools.cycle(DASHES), places, strict=False):
        path = " ".join(f"{area.x(across, x):.1f},{area.y(up, y):.1f}" for x, y in line)
        style = f"fill: none; stroke: {svg.ACCENT}; stroke-width: 1.5; stroke-dasharray: {dash}"
        parts.append(svg.element("polyline", points=path, style=style))
        parts += [svg.marker("circle", area.x(across, x), area.y(up, y), filled=True) for x, y in line if markers]
        parts.append(svg.label(area.right + 10, place + 4, name))
    said = "; ".join(f"{name}: {text.score(line[-1][1])} after {line[-1][0]:.0f}" for name, line in points.items())
    return svg.drawing(WIDTH, area.bottom + 40, f"{label} over {unit}", said, *parts)


def _level(area: Area, up: Axis, target: float) -> str:
    y = area.y(up, target)
    return svg.line(area.left, y, area.right, y, stroke_dasharray="5 4") + svg.label(
        area.left + 6, y - 5, f"target {target:g}"
    )


def _splits(view: TrainingView) -> str | None:
    """A bar per run: what its seconds went to, on rank 0."""
    runs = [(run, run.split) for run in view.record.runs if run.split is not None]
    if not runs:
        return None
    totals = [_total(split) for _, split in runs]
    across = linear_axis("seconds", [0, *totals])
    area = Area(left=70, top=50, right=WIDTH - 70, bottom=50 + 34 * len(runs))
    parts = [draw_bottom(area, across)]
    for index, (run, split) in enumerate(runs):
        y, start = area.top + 34 * index + 6, 0.0
        parts.append(svg.label(0, y + 15, seed(run)))
        for name, opacity in PARTS.items():
            seconds = getattr(split, name)
            left, right = area.x(across, start), area.x(across, start + seconds)
            style = f"fill: {svg.ACCENT}; fill-opacity: {opacity}; stroke: {svg.INK}; stroke-width: 0.75"
            parts.append(svg.element("rect", x=left, y=y, width=max(0.0, right - left), height=22, style=style))
            start += seconds
        parts.append(svg.label(area.x(across, start) + 8, y + 15, f"{text.number(start)} s"))
    parts.append(_legend())
    said = "; ".join(f"{seed(run)}: {_told(split)}" for run, split in runs)
    return svg.drawing(WIDTH, area.bottom + 40, "Where the time went", said, *parts)


def _legend() -> str:
    parts = []
    for index, (name, opacity) in enumerate(PARTS.items()):
        x, y = 70 + 110 * (index % 3), 4 + 20 * (index // 3)
        style = f"fill: {svg.ACCENT}; fill-opacity: {opacity}; stroke: {svg.INK}; stroke-width: 0.75"
        parts += [svg.element("rect", x=x, y=y, width=12, height=12, style=style), svg.label(x + 17, y + 11, name)]
    return "".join(parts)


def _told(split: Split) -> str:
    return ", ".join(f"{name} {text.number(getattr(split, name))} s" for name in PARTS)


def _total(split: Split) -> float:
    return float(sum(getattr(split, name) for name in PARTS))
