"""The last thing on the terminal: every case's verdict, and what led to it, whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from proofmark.literal import short
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Verdict, VerdictKind
from reports.content import text
from reports.content.view import View
from reports.rich_text import rendered


def verdict_table(records: Sequence[CaseRecord], run_dir: Path, width: int, coloured: bool) -> str:
    """A row per case: its verdict; what was run and how fast it is, or all reasons why it did not pass.

    `run_dir` is the session's folder as people are told of it. Without colours it is plain text.
    """
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for view in map(View, records):
        table.add_row(_kind(view.verdict), Group(*_details(view, run_dir)))
    return rendered(table, width, coloured)


def _kind(verdict: Verdict) -> Text:
    return Text(str(verdict.kind), style=f"bold {verdict.kind.colour}")


def _details(view: View[CaseRecord], run_dir: Path) -> Iterator[RenderableType]:
    record = view.record
    yield Text.assemble((text.printable(f"{record.suite}/{record.case}"), "bold"), "  ", (view.variant, "dim"))
    if view.verdict.kind is VerdictKind.PASS:
        for figure, shown in list(view.headlines())[:1]:  # what it is ranked by
            yield Text(text.printable(f"{figure.name} {shown}"))
    for reason in view.verdict.reasons:
        yield _bullet(reason)
    for sentence in _kept(record, run_dir / record.run_name):
        yield _bullet(sentence)


def _kept(record: CaseRecord, folder: Path) -> Iterator[str]:
    """What is in the run's folder, and what lies elsewhere."""
    inside = [f"{kept.path} ({kept.what})" for kept in record.kept if not Path(kept.path).is_absolute()]
    if inside:
        yield f"kept in {folder}: {', '.join(inside)}"
    for kept in record.kept:
        path = Path(kept.path)
        if path.is_absolute():
            yield f"kept: {short(path)} ({kept.what})"


def _bullet(sentence: str) -> RenderableType:
    """A text of any length, wrapped beside its dash."""
    row = Table.grid()
    row.add_column(no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row("- ", Text(text.printable(sentence)))
    return Padding(row, 0)
