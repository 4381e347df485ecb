"""An inference case's part of the page, and its charts."""

from __future__ import annotations

from pathlib import Path

from proofmark.inference.outcome.record import RunRecord
from reports.content import text
from reports.html import fragment
from suites.inference.report.plots import notes, plots
from suites.inference.report.view import CaseView

MARKS = {"done": "✓", "skipped": text.MISSING, "failed": "✗", "not_reached": "·"}


def charts(record: RunRecord) -> dict[str, str]:
    """Every plot for which the record has data that may be shown, by title."""
    return plots(CaseView(record))


def section(record: RunRecord) -> str:
    """Why a plot is not there; tracebacks, checks of honesty, the seven steps and the audit."""
    view = CaseView(record)
    return fragment(Path(__file__).with_name("section.html.j2"), view=view, notes=notes(view), marks=MARKS)
