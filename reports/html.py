"""The HTML report: one file that needs nothing but itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from proofmark.inference.record import RunRecord
from proofmark.record.envelope import CaseRecord
from proofmark.training.record import TrainingRecord
from reports import labels, provenance, text, watch
from reports.plots import notes, plots
from reports.ranks import rank_rows
from reports.scaling import scaling_rows
from reports.training import TrainingView
from reports.training_plots import training_plots
from reports.training_timeline import unread_in_training
from reports.view import SIDES, CaseView, Figure

_TEMPLATES = Path(__file__).parent / "templates"

_TONES = {"green": "pass", "red": "fail"}
"""Classes of the page's style by a verdict's colour; any other is open."""

_STEP_MARKS = {"done": "✓", "skipped": text.MISSING, "failed": "✗", "not_reached": "·"}


class Notes:
    """Footnotes of a table: equal reasons share a number."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def number(self, reason: str) -> int:
        """The number of a reason, counted from 1."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return self.reasons.index(reason) + 1


def write_html(records: Sequence[CaseRecord], path: Path) -> None:
    """Write the report on all records to `path`, whole or not at all. UTF-8.

    Throughputs are items per second, latencies milliseconds per batch, memory GiB (2**30 bytes).

    Raises:
        OSError: no space, no permission.
    """
    draft = path.with_name(f"{path.name}.tmp")
    draft.write_text(render(records), encoding="utf-8")
    os.replace(draft, path)


def render(records: Sequence[CaseRecord]) -> str:
    """The report on all records as a page. Depends on nothing but them."""
    views = [CaseView(record) for record in records if isinstance(record, RunRecord)]
    trained = [TrainingView(record) for record in records if isinstance(record, TrainingRecord)]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            views=views,
            trained=trained,
            scaling=scaling_rows(trained),
            rank_rows=rank_rows,
            everything=[*views, *trained],
            notes=Notes(),
            mark=lambda view: (view.verdict.kind.sign, _TONES.get(view.verdict.kind.colour, "open")),
            step_mark=_STEP_MARKS.__getitem__,
            against_target=against_target,
            measured_rows=measured_rows,
            training_plots=lambda view: {title: Markup(svg) for title, svg in training_plots(view).items()},  # noqa: S704
            unread_in_training=unread_in_training,
            plots=lambda view: {title: Markup(drawing) for title, drawing in plots(view).items()},  # noqa: S704 (escaped)
            plot_notes=notes,
            watch=watch,
            labels=labels,
            text=text,
            provenance=provenance,
        )
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def against_target(view: CaseView) -> Figure:
    """The ranked accuracy and how it compares with the target."""
    score, target = view.ranked_score, view.record.accuracy.target
    if score.value is None:
        return score
    return Figure(f"{score.text} {'≥' if score.value >= target else '<'} {target:g}", score.value)


def measured_rows(view: CaseView) -> list[tuple[str, list[Figure]]]:
    """The figures of framework and engine side by side, by what they are."""

    def both(form: Callable[..., Figure], *arguments: str) -> list[Figure]:
        return [form(side, *arguments) for side in SIDES]

    rows = [
        (_both_named(labels.WHOLE), both(view.speed, "whole")),
        (_both_named(labels.CORE), both(view.speed, "core")),
        (labels.LOADER.name, both(view.loader)),
        (labels.BOUND_BY.name, both(view.bound_by)),
        ("core lost to loading", both(view.core_lost)),
        ("others on the cores", both(view.contention)),
    ]
    rows += [(f"latency per batch, {name}", both(view.latency, name)) for name in view.latencies]
    return rows


def _both_named(label: labels.Label) -> str:
    """The label with FlagPerf's names of the framework's figure and of the engine's."""
    names = [labels.throughput(side, label).flagperf for side in SIDES]
    return f"{label.name} ({', '.join(filter(None, names))})"
