"""The plots of a training record, as inline SVG."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from proofmark.training.outcome.record import SeedRun, Split
from reports.charts import svg
from reports.charts.axes import WIDTH, Area, draw_bottom, linear_axis
from reports.charts.lines import Line, line_chart
from reports.content import text
from suites.training.report.timeline import training_timeline
from suites.training.report.view import TrainingView

PARTS = {"init": 0.15, "data": 0.3, "compute": 1.0, "communication": None, "evaluation": 0.55}
PARTS |= {"checkpoint": 0.75, "other": 0.05, "confirmation": 0.4}
"""Parts of a run's time in their order, with the opacity of their stretch; None is hatched."""

HATCH = svg.element(
    "pattern",
    svg.element("line", y2=5, stroke=svg.ACCENT, stroke_width=3),
    id="hatch",
    width=5,
    height=5,
    patternUnits="userSpaceOnUse",
    patternTransform="rotate(45)",
)
"""What stands for communication, in black and white too."""


def training_plots(view: TrainingView) -> dict[str, str]:
    """Every plot for which the record has data, by title."""
    metric, unit = view.record.metric, f"{view.items} trained on"
    metrics = {view.called(run): [(e.samples, e.metric) for e in run.evaluations] for run in view.record.runs}
    losses = {view.called(run): _by_samples(run) for run in view.record.runs}
    drawn = {
        f"{metric} against target": _curves(metric, unit, metrics, view.record.target),
        **{f"{name} against target": _other(view, name, unit) for name in view.record.others},
        "loss": _curves("loss", unit, losses, None),
        "where the time went": _splits(view),
    }
    for run in view.record.runs:
        title = f"over time, {view.called(run)}" if len(view.record.runs) > 1 else "over time"
        drawn[title] = training_timeline(view, run)
    return {title: drawing for title, drawing in drawn.items() if drawing is not None}


def _other(view: TrainingView, name: str, unit: str) -> str | None:
    """A value of the metric but the headline."""
    lines = {view.called(run): [(e.samples, e.others.get(name)) for e in run.evaluations] for run in view.record.runs}
    return _curves(name, unit, lines, view.record.others[name].target)


def _by_samples(run: SeedRun) -> Line:
    """The loss over samples, since steps of two scales mean different things."""
    each = run.samples / run.steps if run.samples and run.steps else 0.0
    return [(step * each, loss) for step, loss in run.losses]


def _curves(label: str, unit: str, lines: Mapping[str, Line], target: float | None) -> str | None:
    """Lines over samples; a value that was no number leaves a gap."""
    points = {name: [(x, y) for x, y in line if y is not None] for name, line in lines.items()}
    points = {name: line for name, line in points.items() if line}
    if not points:
        return None
    values = list(itertools.chain.from_iterable(points.values()))
    across = linear_axis(unit, [0, *(x for x, _ in values)])
    up = linear_axis(label, [y for _, y in values] + ([target] if target is not None else []))
    said = "; ".join(f"{name}: {text.score(line[-1][1])} after {line[-1][0]:.0f}" for name, line in points.items())
    return line_chart(f"{label} over {unit}", said, across, up, {name: lines[name] for name in points}, target)


def _splits(view: TrainingView) -> str | None:
    """A bar per run: what its seconds went to, on rank 0."""
    runs = [(run, run.split) for run in view.record.runs if run.split is not None]
    if not runs:
        return None
    names = [name for name in PARTS if any(name in parts_of(split) for _, split in runs)]
    across = linear_axis("seconds", [0, *(sum(parts_of(split).values()) for _, split in runs)])
    top = 10 + 20 * -(-len(names) // 3)
    area = Area(left=70, top=top, right=WIDTH - 70, bottom=top + 34 * len(runs))
    parts = [HATCH, draw_bottom(area, across)]
    for index, (run, split) in enumerate(runs):
        y, start = area.top + 34 * index + 6, 0.0
        parts.append(svg.label(0, y + 15, view.called(run)))
        for name, seconds in parts_of(split).items():
            left, right = area.x(across, start), area.x(across, start + seconds)
            parts.append(_stretch(name, x=left, y=y, width=max(0.0, right - left), height=22))
            start += seconds
        parts.append(svg.label(area.x(across, start) + 8, y + 15, f"{text.number(start)} s"))
    parts.append(_legend(names))
    said = "; ".join(f"{view.called(run)}: {_split_text(split)}" for run, split in runs)
    return svg.drawing(WIDTH, area.bottom + 40, "Where the time went", said, *parts)


def parts_of(split: Split) -> dict[str, float]:
    """Seconds of each part in their order; communication, where it is known, apart from the rest of compute."""
    seconds = {name: getattr(split, name) for name in PARTS if getattr(split, name) is not None}
    return seconds | {"compute": split.compute - (split.communication or 0.0)}


def _stretch(name: str, **place: float) -> str:
    opacity = PARTS[name]
    fill = "url(#hatch)" if opacity is None else f"{svg.ACCENT}; fill-opacity: {opacity}"
    return svg.element("rect", **place, style=f"fill: {fill}; stroke: {svg.INK}; stroke-width: 0.75")


def _legend(names: Sequence[str]) -> str:
    parts = []
    for index, name in enumerate(names):
        x, y = 40 + 122 * (index % 3), 4 + 20 * (index // 3)
        parts += [_stretch(name, x=x, y=y, width=12, height=12), svg.label(x + 17, y + 11, name)]
    return "".join(parts)


def _split_text(split: Split) -> str:
    return ", ".join(f"{name} {text.number(seconds)} s" for name, seconds in parts_of(split).items())
