"""The last thing on the terminal: every case's verdict, and what led to it, whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from proofmark.inference.record import RunRecord
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Verdict, VerdictKind
from proofmark.training.record import TrainingRecord
from reports import labels, text
from reports.rich_text import rendered
from reports.training import TrainingView
from reports.view import CaseView


def verdict_table(records: Sequence[CaseRecord], run_dir: Path, width: int, coloured: bool) -> str:
    """A row per case: its verdict; what was run and how fast it is, or all reasons why it did not pass.

    `run_dir` is the session's folder as people are told of it. Without colours it is plain text.
    """
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for record in records:
        view = _view(record)
        if view is not None:
            table.add_row(_kind(view.verdict), Group(*_told(view, run_dir)))
    return rendered(table, width, coloured)


def _view(record: CaseRecord) -> CaseView | TrainingView | None:
    if isinstance(record, RunRecord):
        return CaseView(record)
    return TrainingView(record) if isinstance(record, TrainingRecord) else None


def _kind(verdict: Verdict) -> Text:
    return Text(str(verdict.kind), style=f"bold {verdict.kind.colour}")


def _told(view: CaseView | TrainingView, run_dir: Path) -> Iterator[RenderableType]:
    by = (view.compiler, view.record.precision) if isinstance(view, CaseView) else (view.record.precision,)
    run = text.printable(", ".join((view.record.vendor, *by)))
    name = view.name if isinstance(view, CaseView) else f"{view.record.suite}/{view.name}"
    yield Text.assemble((text.printable(name), "bold"), "  ", (run, "dim"))
    if view.verdict.kind is VerdictKind.PASS:
        yield Text(text.printable(_headline(view)))
    for reason in view.verdict.reasons:
        yield _bullet(reason)
    for told in _kept(view, run_dir):
        yield _bullet(told)


def _kept(view: CaseView | TrainingView, run_dir: Path) -> Iterator[str]:
    """What is in the case's folder, and what lies elsewhere."""
    folder = run_dir / view.record.suite / view.record.case
    folder = folder / view.record.scale if isinstance(view, TrainingView) else folder
    inside = [f"{kept.path} ({kept.what})" for kept in view.record.kept if not Path(kept.path).is_absolute()]
    if inside:
        yield f"kept in {folder}: {', '.join(inside)}"
    for kept in view.record.kept:
        path = Path(kept.path)
        if path.is_absolute():
            shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
            yield f"kept: {shown} ({kept.what})"


def _headline(view: CaseView | TrainingView) -> str:
    """The figure that the case is ranked by."""
    if isinstance(view, CaseView):
        return f"{labels.throughput(view.ranked, labels.CORE).name} {view.speed(view.ranked, 'core')}"
    return f"{labels.TO_TARGET.name} {view.to_target}"


def _bullet(told: str) -> RenderableType:
    """A text of any length, wrapped beside its dash."""
    row = Table.grid()
    row.add_column(no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row("- ", Text(text.printable(told)))
    return Padding(row, 0)
