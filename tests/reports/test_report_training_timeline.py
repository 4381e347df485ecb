"""A training over time: throughput without evaluations, and what the monitors of one node or several read."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from proofmark.record.parts import Monitoring, Series
from proofmark.training.outcome.record import Evaluation, NotedStep, SeedRun
from reports.charts.panels import Panel
from reports.charts.readings import reading_panels
from suites.training.report.plots import training_plots
from suites.training.report.timeline import LEVELS, _throughput, training_timeline, unread_in_training
from suites.training.report.view import TrainingView
from tests.reports.records import readings
from tests.suites_there import page_of
from tests.training_records import BEGUN, make_run, make_training

SVG = "{http://www.w3.org/2000/svg}"


def labels(drawing: str | None) -> list[str]:
    assert drawing is not None
    return [element.text or "" for element in ET.fromstring(drawing).iter(f"{SVG}text")]


def note(second: float, samples: int) -> NotedStep:
    return NotedStep(step=samples, epoch=0, samples=samples, time=BEGUN + second, learning_rate=0.1, loss=1.0)


def evaluation(began: float, ended: float) -> Evaluation:
    return Evaluation(samples=200, seconds=0.0, metric=0.95, began=BEGUN + began, ended=BEGUN + ended)


def run(**changes: Any) -> SeedRun:
    """Ten samples a second; from second 20 to 30 nothing but an evaluation."""
    notes = [note(10, 100), note(15, 150), note(20, 200), note(40, 300), note(45, 350)]
    values = {"notes": notes, "evaluations": [evaluation(20, 30)], "train_began": BEGUN + 5, "train_ended": BEGUN + 45}
    return make_run(**{**values, "e2e_seconds": 60.0, "monitoring": seen(readings(2)), **changes})


def seen(series: tuple[Series, ...], **changes: Any) -> Monitoring:
    return Monitoring(samples=9, window=None, series=series, **changes)


def on_node(node: int, *values: float, device: int = 0, name: str = "power") -> Series:
    times = tuple(BEGUN + 10.0 * number for number in range(len(values)))
    return Series(name=name, unit="W", device=device, node=node, times=times, values=values)


def view(*runs: SeedRun, **changes: Any) -> TrainingView:
    return TrainingView(make_training(*runs, **changes))


def levels(of: SeedRun) -> list[list[tuple[float, float]]]:
    panels: list[Panel] = list(_throughput(view(of), of))
    return [list(stretch) for panel in panels for line in panel.lines for stretch in line.stretches]


def test_throughput_leaves_evaluations_out_and_has_a_gap_there() -> None:
    assert levels(run()) == [[(10, 10), (15, 10), (15, 10), (20, 10)], [(30, 10), (40, 10), (40, 10), (45, 10)]]


def test_a_resumed_or_broken_clock_makes_no_rate() -> None:
    assert levels(run(notes=[note(10, 100), note(10, 200), note(9, 300), note(20, 300)])) == []
    assert levels(run(notes=[note(10, 100)])) == levels(run(notes=[])) == []


def test_a_long_training_has_as_many_levels_as_can_be_told_apart() -> None:
    found = levels(run(notes=[note(number, 10 * number + 10) for number in range(1000)], evaluations=[]))
    assert len(found) == 1 and 50 <= len(found[0]) / 2 <= LEVELS


def test_training_is_shaded_and_its_evaluations_darker() -> None:
    drawing = training_timeline(view(run()), run())
    shown = labels(drawing)
    assert "throughput, points/s" in shown and "training, 40.0 s; evaluations darker" in shown
    for panel in ("device utilisation, %", "power, W", "temperature, °C", "device memory, GiB"):
        assert shown.count(panel) == 1
    bands = [float(band.get("fill-opacity", 0)) for band in ET.fromstring(drawing or "").iter(f"{SVG}rect")]
    assert bands == [0.09, 0.17]


def test_several_nodes_have_a_line_each() -> None:
    series = (on_node(0, 100.0, 200.0), on_node(0, 300.0, 400.0, device=1), on_node(1, 50.0, 60.0))
    hosts = (on_node(0, 0.5, name="host CPU"), on_node(1, 0.7, name="host CPU"))
    alone = tuple(host.model_copy(update={"device": None}) for host in hosts)
    drawing = training_timeline(view(run()), run(monitoring=seen((*series, *alone))))
    shown = labels(drawing)
    assert "power, W, sum of a node" in shown and "host CPU, %" in shown
    assert shown.count("node 0") == shown.count("node 1") == 2 and "device 0" not in shown
    assert "node 0: 400.0 to 600.0" in (drawing or "") and "node 1: 50.00 to 60.00" in (drawing or "")


def test_readings_of_other_moments_are_taken_between() -> None:
    late = on_node(0, 10.0, 30.0, device=1).model_copy(update={"times": (BEGUN + 5.0, BEGUN + 15.0)})
    (panel,) = reading_panels(seen((on_node(0, 0.0, 0.0, 0.0), late, on_node(1, 1.0))), BEGUN)
    assert list(panel.lines[0].points) == [(0, 10), (10, 20), (20, 30)], "before and after they stay as they were"
    assert list(panel.lines[1].points) == [(0, 1)]


def test_each_run_has_its_own() -> None:
    assert [title for title in training_plots(view(run())) if "over time" in title] == ["over time"]
    several = training_plots(view(run(), run(seed=1)))
    assert [title for title in several if "over time" in title] == ["over time, seed 0", "over time, seed 1"]


def test_without_a_monitor_there_is_throughput_and_a_sentence() -> None:
    bare = run(monitoring=None)
    shown = labels(training_timeline(view(bare), bare))
    assert "throughput, points/s" in shown and "power, W" not in shown
    assert unread_in_training(view(bare)) == "No readings over time: there was no monitor."
    assert "No readings over time" in page_of([view(bare).record])
    hosts_only = run(monitoring=seen(readings(0)))
    assert unread_in_training(view(hosts_only)) == "No reading of power or temperature."


def test_a_withheld_speed_is_not_to_be_read_from_it() -> None:
    missed = run(converged=False, metric=0.1)
    (shown,) = view(missed).record.runs
    assert missed.monitoring and missed.monitoring.series and training_timeline(view(missed), shown) is None
    expected = "No readings over time are shown. Throughput over time withheld: FAIL_ACCURACY."
    assert unread_in_training(view(missed)) == expected


@pytest.mark.parametrize(
    "changes", [{"train_began": None}, {"evaluations": []}, {"e2e_seconds": None}, {"started": BEGUN - 900}]
)
def test_whatever_is_unknown_it_is_a_legal_plot(changes: dict[str, Any]) -> None:
    ET.fromstring(training_timeline(view(run()), run(**changes)) or "")


def test_no_queue_is_in_it() -> None:
    queued = run(started=BEGUN - 3600, begun=BEGUN)
    assert training_timeline(view(queued), queued) == training_timeline(view(run()), run())


def test_nothing_known_is_no_plot() -> None:
    assert training_timeline(view(run()), run(notes=[], monitoring=None)) is None
    early = on_node(0, 1.0).model_copy(update={"times": (BEGUN - 5000.0,)})
    unseen = run(notes=[], train_began=BEGUN + 58, train_ended=BEGUN + 59, monitoring=seen((early,)))
    assert training_timeline(view(run()), unseen) is None, "what was read lies beyond what is looked at closely"
