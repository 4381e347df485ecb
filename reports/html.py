"""The HTML report: one file that needs nothing but itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from proofmark.atomic_file import write_atomically
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import VerdictKind
from proofmark.suite import Suite
from reports.content import provenance, text
from reports.content.compared import compared, teller
from reports.content.view import Shown, View, check_bound, check_figure, explained, with_other_name

_TEMPLATES = Path(__file__).parent / "templates"

_TONES = {"green": "pass", "red": "fail"}
"""Classes of the page's style by a verdict's colour; any other is open."""


class Notes:
    """Footnotes of a table: equal reasons share a number."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def number(self, reason: str) -> int:
        """The number of a reason, counted from 1."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return self.reasons.index(reason) + 1


class Group:
    """The runs of a suite, in the table of all runs: a column for each figure that any of them has there."""

    def __init__(self, suite: str, views: Sequence[View[CaseRecord]]) -> None:
        self.suite, self.views, self.notes = suite, views, Notes()
        self.variant = list(dict.fromkeys(name for view in views for name in view.record.variant))
        headlines = [figure for view in views for figure, _ in view.headlines()]
        self.columns = {figure.key: with_other_name(figure.label, figure) for figure in headlines}
        self.explained = explained([view.record for view in views])

    def cells(self, view: View[CaseRecord]) -> Iterator[tuple[str, Shown, int]]:
        """A run's figures: column, figure, and over how many columns it goes; what is withheld is said once."""
        every = [(label, view.shown(key)) for key, label in self.columns.items()]
        for text_, group in itertools.groupby(every, key=lambda cell: cell[1].text):
            cells = list(group)
            if text_ == view.withheld:
                yield cells[0][0], cells[0][1], len(cells)
            else:
                yield from ((label, shown, 1) for label, shown in cells)


def write_html(
    records: Sequence[CaseRecord], path: Path, suites: Mapping[str, Suite] | None = None, refresh: int | None = None
) -> None:
    """Write the report on all records to `path`, whole or not at all. UTF-8.

    Of a suite that is not among `suites` the page has envelopes and figures alone.

    Args:
        refresh: seconds after which a browser reads it again, where it is to be replaced by another.

    Raises:
        OSError: no space, no permission.
    """
    write_atomically(path, render(records, suites, refresh), durable=False)


def render(records: Sequence[CaseRecord], suites: Mapping[str, Suite] | None = None, refresh: int | None = None) -> str:
    """The report on all records as a page. Depends on nothing but them."""
    known = suites or {}
    views = sorted(map(View, records), key=lambda view: view.record.suite)
    groups = [Group(suite, list(own)) for suite, own in itertools.groupby(views, key=lambda view: view.record.suite)]
    context: dict[str, Any] = {
        "views": views,
        "groups": groups,
        "comparisons": list(compared(records, known)),
        "refresh": refresh,
    }
    return fragment(_TEMPLATES / "report.html.j2", **context, **of_a_case(known))


def of_a_case(suites: Mapping[str, Suite]) -> dict[str, Any]:
    """What `case.html.j2` asks for, beside a view."""
    return {
        "charts": lambda view: _drawn(teller(view.record, suites), view),
        "section": lambda view: _section(teller(view.record, suites), view),
        "side_by_side": side_by_side,
        "mark": lambda view: (view.verdict.kind.sign, tone(view.verdict.kind)),
    }


def tone(kind: VerdictKind) -> str:
    """The class of the page's style that a verdict has."""
    return _TONES.get(kind.colour, "open")


def fragment(template: Path, **context: Any) -> str:
    """A template filled in, as safe HTML; `figures.html.j2` and `report.css` are there for it to include."""
    return _environment(template.parent).get_template(template.name).render(**context)


@cache
def _environment(folder: Path) -> Environment:
    made = Environment(
        loader=FileSystemLoader([folder, _TEMPLATES]),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"text": text, "provenance": provenance}
    made.globals |= {"check_figure": check_figure, "check_bound": check_bound}
    made.filters["breakable"] = _breakable
    return made


def _breakable(name: str) -> Markup:
    """A name that a narrow column breaks between its words, where it must."""
    return Markup("_<wbr>").join(map(escape, name.split("_")))


def _drawn(suite: Suite | None, view: View[CaseRecord]) -> dict[str, str]:
    drawn = suite.charts(view.record) if suite else {}
    return {title: Markup(drawing) for title, drawing in drawn.items()}  # noqa: S704 (escaped by the suite)


def _section(suite: Suite | None, view: View[CaseRecord]) -> str:
    return Markup(suite.section(view.record) if suite else "")  # noqa: S704 (escaped by the suite)


def side_by_side(view: View[CaseRecord]) -> tuple[list[str], list[tuple[str, list[Shown]]]]:
    """Figures that several have the like of (framework, engine): whose they are, and a row for each of them."""
    shared = [(figure, shown) for figure, shown in view.listed() if figure.of is not None]
    columns = list(dict.fromkeys(figure.of for figure, _ in shared if figure.of))
    rows: dict[str, dict[str, Shown]] = {}
    others: dict[str, list[str]] = {}
    for figure, shown in shared:
        rows.setdefault(figure.label, {})[figure.of or ""] = shown
        others.setdefault(figure.label, []).extend([figure.also] if figure.also else [])
    empty = Shown(text.MISSING)
    return columns, [
        (f"{label} ({', '.join(others[label])})" if others[label] else label, [row.get(of, empty) for of in columns])
        for label, row in rows.items()
    ]
