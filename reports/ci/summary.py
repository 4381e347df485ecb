"""A session in Markdown, as GitHub's step summary or GitLab's note: verdicts first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proofmark.record.envelope import CaseRecord
from proofmark.suite import Suite
from reports.ci.markdown import Section
from reports.content.compared import compared
from reports.content.view import View

COMPARED = "compared_"
"""How the keys of figures begin that are about a baseline."""


def verdicts(records: Sequence[CaseRecord], exit_code: int) -> Section:
    """A row per run, the gravest verdict first: what it is ranked by, or all reasons why it did not pass."""
    views = sorted(map(View, records), key=lambda view: -view.verdict.kind.exit_code)
    count = f"{len(views)} run{'' if len(views) == 1 else 's'}"
    rows = [(_kind(view), view.name, view.variant, _cell(view)) for view in views]
    lines = () if rows else ("no run has left a record",)
    return Section(f"Proofmark: {count}, exit code {exit_code}", ("verdict", "run", "of", "told"), rows, lines)


def slower_or_faster(records: Sequence[CaseRecord]) -> Section:
    """The figures by which a run was held against a baseline, each with its outcome and its interval."""
    rows = [
        (view.name, figure.label, str(view.shown(key)))
        for view in map(View, records)
        for key, figure in view.figures.items()
        if key.startswith(COMPARED)
    ]
    return Section("Slower or faster", ("run", "metric", "beside the baseline"), rows)


def together(records: Sequence[CaseRecord], suites: Mapping[str, Suite]) -> list[Section]:
    """What suites say of several records."""
    return [
        Section(found.title, found.columns, found.rows, (found.note,) if found.note else ())
        for found in compared(records, suites)
    ]


def _kind(view: View[CaseRecord]) -> str:
    return f"{view.verdict.kind.sign} {view.verdict.kind}"


def _cell(view: View[CaseRecord]) -> str:
    shown = [f"{figure.name} {value}" for figure, value in list(view.headlines())[:1]] if not view.withheld else []
    return "; ".join([*shown, *view.verdict.reasons])
