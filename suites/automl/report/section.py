"""A search's part of the page, its drawings, and the page of its own."""

from __future__ import annotations

from pathlib import Path

from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.record.parts import VerdictKind
from proofmark.suite import Suite
from reports.html import fragment, write_html
from suites.automl.report.plots import curves
from suites.automl.report.tree import tree
from suites.automl.report.view import SearchView

SUCCEED, FAILED = "Report_Succeed.html", "Report_Failed.html"
"""As the original's pages are called."""


def charts(record: AutoMLRecord) -> dict[str, str]:
    """Every drawing for which the record has data that may be shown, by title."""
    view = SearchView(record)
    drawn = tree(view)
    return curves(view) | ({"tree of networks": drawn} if drawn else {})


def section(record: AutoMLRecord) -> str:
    """Rules of validity, and all trials."""
    return fragment(Path(__file__).with_name("section.html.j2"), view=SearchView(record))


def write_page(record: AutoMLRecord, run_dir: Path, suite: Suite) -> None:
    """The page of a search alone.

    Raises:
        OSError: no space, no permission.
    """
    passed = record.verdict is not None and record.verdict.kind is VerdictKind.PASS
    write_html([record], run_dir / (SUCCEED if passed else FAILED), {suite.name: suite})
