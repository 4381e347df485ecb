"""What happened when in a training: its throughput and the monitors' readings, training and its evaluations shaded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from proofmark.training.outcome.record import NotedStep, SeedRun
from reports.charts import svg
from reports.charts.panels import Line, Panel, Point, Window, draw_panels, time_axis
from reports.charts.readings import absent, reading_panels
from reports.content import text
from suites.training.report.view import TrainingView

LEVELS = 100
"""Most stretches of equal throughput: as many as can be told apart."""

Span = tuple[float, float]


def training_timeline(view: TrainingView, run: SeedRun) -> str | None:
    """Over the seconds that the run's are counted in; None if nothing is known of any moment."""
    panels = [] if view.withheld else list(_throughput(view, run))
    panels += reading_panels(run.monitoring, run.zero) if run.monitoring else []
    if not panels:
        return None
    window, evaluations = _window(run), [(begin - run.zero, end - run.zero) for begin, end in _evaluations(run)]
    across = time_axis(panels, run.e2e_seconds or 0.0, window[:2] if window else None)
    if window and any(window.begin <= begin <= window.end for begin, _ in evaluations):
        window = window._replace(name=f"{window.name}; evaluations darker")
    return draw_panels(panels, across, window, [span for span in evaluations if span[1] >= across.low])


def unread_in_training(view: TrainingView) -> str | None:
    """Sentences on what is not to be seen over time; None if all is."""
    seen = [run.monitoring for run in view.record.runs]
    sentences = dict.fromkeys(
        "No readings over time: there was no monitor." if each is None else absent(each) for each in seen
    )
    withheld = f"Throughput over time {view.withheld}." if view.withheld and seen else None
    return " ".join(filter(None, (*sentences, withheld))) or None


def _window(run: SeedRun) -> Window | None:
    begin, end = run.train_began, run.train_ended
    if begin is None or end is None:
        return None
    what = "training" if run.resumed_from is None else "training since it was resumed"
    return Window(begin - run.zero, end - run.zero, f"{what}, {text.number(end - begin, 3)} s")


def _evaluations(run: SeedRun) -> list[Span]:
    return [(e.began, e.ended) for e in run.evaluations if e.began is not None and e.ended is not None]


def _throughput(view: TrainingView, run: SeedRun) -> Iterator[Panel]:
    """Between two noted steps a level, over the time between them that no evaluation took."""
    notes = run.notes[:: -(-len(run.notes) // LEVELS)] if run.notes else ()
    stretches: list[list[Point]] = []
    for before, after in itertools.pairwise(notes):
        level = _level(before, after, _evaluations(run))
        if level is None:
            continue
        begin, rate = level
        if not stretches or stretches[-1][-1][0] != begin - run.zero:
            stretches.append([])
        stretches[-1] += [(begin - run.zero, rate), (after.time - run.zero, rate)]
    if stretches:
        line = Line("all ranks", tuple(map(tuple, stretches)), "none", svg.ACCENT, 1.8)
        yield Panel(f"throughput, {view.items}/s", (line,), (0.0,))


def _level(before: NotedStep, after: NotedStep, evaluations: Sequence[Span]) -> tuple[float, float] | None:
    """Where a level begins, which is after the evaluation that it begins with, and items per second."""
    between = [span for span in evaluations if span[0] < after.time and span[1] > before.time]
    took = sum(min(end, after.time) - max(begin, before.time) for begin, end in between)
    seconds = after.time - before.time - took
    if seconds <= 0 or after.samples <= before.samples:
        return None
    begin = between[0][1] if len(between) == 1 else before.time
    return begin, (after.samples - before.samples) / seconds
