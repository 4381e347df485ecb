"""The figures at the end of a terminal session: what FlagPerf's "Finish Info" has, and more."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from proofmark.record.envelope import CaseRecord
from proofmark.record.figures import Figure
from proofmark.suite import Suite
from reports.content import text
from reports.content.compared import compared
from reports.content.provenance import override_level, override_line
from reports.content.view import Shown, View, explained, with_other_name

WIDTH = 80
_LABEL, _WIDEST, _GAP = 24, 32, "  "
AS_ABOVE = "as above"
MANY = 3
"""Figures in a row without a value that have one line, where they have one reason."""


def summary_lines(
    records: Sequence[CaseRecord], width: int = WIDTH, suites: Mapping[str, Suite] | None = None
) -> list[str]:
    """Every case's figures, overrides and verdict, at most `width` columns wide; not of those that were interrupted.

    What `suites` have to say of several records comes last. Memory is told in GiB (2**30 bytes).
    """
    ended = [record for record in records if record.interrupted is None]
    lines = [line for record in ended for line in _case_lines(View(record), width)]
    for comparison in compared(ended, suites or {}):
        for label, sentence in comparison.lines.items():
            lines += [*_wrapped(label, sentence, _LABEL, width), ""]
    return lines


def explanations(records: Sequence[CaseRecord], width: int = WIDTH) -> list[str]:
    """What the figures of these records are."""
    explained_lines = [
        line for name, meaning in explained(records).items() for line in _wrapped(name, meaning, _LABEL, width)
    ]
    return [_rule("what the figures are", width), *explained_lines, ""] if explained_lines else []


def _case_lines(view: View[CaseRecord], width: int) -> Iterator[str]:
    """The reasons of a verdict stand where all verdicts are."""
    yield _rule(f"{view.name}, profile {view.record.profile}", width)
    known = view.record.variant
    rows = [*_envelope(view.record), *((label, value) for label, value in _rows(view) if label not in known)]
    column = max(_LABEL, min(_WIDEST, len(_GAP) + max(len(label) for label, _ in rows)))
    for label, value in _missing_together(rows):
        yield from _wrapped(label, value, column, width)
    for entry in view.record.overrides:
        yield from _wrapped(override_level(entry), f"{entry.key}: {override_line(entry)}", 8, width)
    yield f"VERDICT {view.verdict.kind}"
    yield ""


def _missing_together(rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Figures in a row that one reason leaves out have one line: of a case that did not begin those are nearly all."""
    for value, group in itertools.groupby(rows, key=lambda row: row[1]):
        labels = [label for label, _ in group]
        if value.startswith(text.MISSING) and len(labels) >= MANY:
            yield labels[0], f"{value}; nor {', '.join(labels[1:])}"
        else:
            yield from ((label, value) for label in labels)


def _envelope(record: CaseRecord) -> Iterator[tuple[str, str]]:
    yield "vendor", record.vendor
    yield "chip", record.chip.name
    yield from record.variant.items()
    yield "precision", record.precision
    yield "isolation", record.isolated


def _rows(view: View[CaseRecord]) -> Iterator[tuple[str, str]]:
    """A line for each figure, one for all parts of a thing."""
    for name, group in itertools.groupby(_once(view.listed()), key=lambda each: each[0].name.partition(": ")[0]):
        figures = list(group)
        if any(": " in figure.label for figure, _ in figures):
            yield name, _parts(figures)
        else:
            yield from (_row(figure, shown) for figure, shown in figures)


def _once(figures: Iterable[tuple[Figure, Shown]]) -> Iterator[tuple[Figure, Shown]]:
    """A note that several figures in a row have stands beside the first."""
    before: str | None = None
    for figure, shown in figures:
        note = shown.reason if shown.value is not None else None
        yield figure, replace(shown, reason=AS_ABOVE) if note and note == before else shown
        before = note


def _row(figure: Figure, shown: Shown) -> tuple[str, str]:
    """What others call a figure stands behind it where it is too long for the column of names."""
    name = with_other_name(figure.name, figure)
    if figure.also is None or len(name) < _LABEL:
        return name, str(shown)
    return figure.name, f"{shown} ({figure.also})" if shown.value is not None else str(shown)


def _parts(figures: Sequence[tuple[Figure, Shown]]) -> str:
    """The parts that are known; else why none is."""
    known = [f"{figure.label.partition(': ')[2]} {shown}" for figure, shown in figures if shown.value is not None]
    return ", ".join(known or dict.fromkeys(str(shown) for _, shown in figures))


def _rule(title: str, width: int) -> str:
    title = text.printable(title)
    if len(title) > width - 6:
        title = f"{title[: width - 9]}..."
    return f"-- {title} ".ljust(width, "-")


def _wrapped(label: str, value: str, indent: int, width: int) -> list[str]:
    """`label`, then `value` from column `indent` on, wrapped and free of control characters."""
    name = text.printable(label)
    head = name.ljust(indent) if len(name) < indent else name + _GAP
    body = text.printable(value) or text.MISSING
    hanging = " " * indent
    return textwrap.wrap(body, width, initial_indent=head, subsequent_indent=hanging, break_on_hyphens=False)
