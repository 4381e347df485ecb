"""A training's part of the page, its charts, and the logs that other tools read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proofmark.record.comparison import Comparison
from proofmark.training.outcome.record import TrainingRecord
from reports.html import fragment
from suites.training.report.mllog import mllog
from suites.training.report.perflog import perflog
from suites.training.report.plots import training_plots
from suites.training.report.ranks import rank_rows
from suites.training.report.scaling import scaling
from suites.training.report.timeline import unread_in_training
from suites.training.report.view import TrainingView


def charts(record: TrainingRecord) -> dict[str, str]:
    """Every plot for which the record has data that may be shown, by title."""
    return training_plots(TrainingView(record))


def section(record: TrainingRecord) -> str:
    """Last words of ranks that failed, checks of honesty, and the ranks."""
    view = TrainingView(record)
    return fragment(
        Path(__file__).with_name("section.html.j2"), view=view, unread=unread_in_training(view), rank_rows=rank_rows
    )


def comparisons(records: Sequence[TrainingRecord]) -> list[Comparison]:
    """How cases scale that were trained at several scales."""
    return scaling([TrainingView(record) for record in records])


def write_logs(record: TrainingRecord, run_dir: Path) -> None:
    """Each run as other tools read it, beside what its ranks left.

    Raises:
        OSError: no space, no permission.
    """
    for number, run in enumerate(record.runs, 1):
        folder = run_dir / f"round{number}"
        (folder / "perflog.txt").write_text(perflog(record, run), encoding="utf-8")
        (folder / "mllog.txt").write_text(mllog(record, run), encoding="utf-8")
