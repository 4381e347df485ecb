"""What happened when in a case: its rounds' throughput and the monitor's readings, the timed window shaded."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.inference.outcome.reasons import SIDES, Side
from reports.charts import svg
from reports.charts.panels import Line, Panel, Window, draw_panels, time_axis
from reports.charts.readings import absent, reading_panels
from reports.content import text
from suites.inference.report.view import CaseView


def timeline_plot(view: CaseView) -> str | None:
    """Throughput, utilisation, power, temperature and memory as far as they were read; the timed window shaded."""
    if view.withheld or view.record.monitoring is None or not view.record.monitoring.series:
        return None
    panels = [*_throughput(view), *reading_panels(view.record.monitoring, view.record.zero)]
    timed = [moment for side in SIDES for span in view.spans(side) for moment in span[:2]]
    across = time_axis(panels, view.record.seconds or 0.0, (min(timed), max(timed)) if timed else None)
    window = None
    if view.window:
        window = Window(*view.window, f"timed window, {text.number(view.window[1] - view.window[0], 3)} s")
    return draw_panels(panels, across, window)


def unread(view: CaseView) -> str | None:
    """Sentences on what is not to be seen over time; None if all is."""
    if view.record.monitoring is None:
        return "Nothing over time: there was no monitor."
    return f"Everything over time {view.withheld}." if view.withheld else absent(view.record.monitoring)


def _throughput(view: CaseView) -> Iterator[Panel]:
    rounds = tuple(filter(None, (_round_line(view, side) for side in SIDES)))
    if rounds:
        yield Panel(f"throughput, {view.items}/s", rounds, (0.0,))


def _round_line(view: CaseView, side: Side) -> Line | None:
    """A level per round, as long as the round took."""
    levels = tuple(((begin, rate), (end, rate)) for begin, end, rate in view.spans(side))
    engine = side == "engine"
    return Line(side, levels, "none" if engine else "2 2", svg.ACCENT if engine else svg.INK, 3) if levels else None
