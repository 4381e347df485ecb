"""Readings over time: what is drawn, what is said to be absent, and that neither gives a speed away."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from reports.charts.svg import DASHES
from suites.inference.report.timeline import timeline_plot, unread
from suites.inference.report.view import CaseView
from tests.reports.records import BEGUN, make_record, measurement, readings, watched, watched_record

SVG = "{http://www.w3.org/2000/svg}"


def labels(drawing: str) -> list[str]:
    return [element.text for element in ET.fromstring(drawing).iter(f"{SVG}text")]


def lines(drawing: str) -> list[ET.Element]:
    return list(ET.fromstring(drawing).iter(f"{SVG}polyline"))


def test_every_subject_has_a_panel_and_every_device_a_line():
    shown = labels(timeline_plot(CaseView(watched_record())))
    for panel in ("throughput, images/s", "device utilisation, %", "power, W", "temperature, °C", "device memory, GiB"):
        assert shown.count(panel) == 1
    assert shown.count("device 0") == shown.count("device 1") == 4
    assert "timed window, 26.9 s" in shown and "host" not in shown
    assert unread(CaseView(watched_record())) is None


def test_a_case_elsewhere_is_drawn_by_its_hosts_clock_since_it_began_there():
    """An hour in a queue, and a clock that is ten minutes ahead."""
    here, there = (watched_record(started=BEGUN - late, begun=begun) for late, begun in ((0, None), (4200, BEGUN)))
    assert CaseView(there).spans("engine") == CaseView(here).spans("engine")
    assert CaseView(there).window == CaseView(here).window
    assert timeline_plot(CaseView(there)) == timeline_plot(CaseView(here))


def test_devices_differ_without_colour():
    drawing = timeline_plot(CaseView(watched_record(monitoring=watched(series=readings(8)))))
    assert labels(drawing).count("device 7") == 4
    assert {re.search(r"dasharray: ([^;]*)", line.get("style"))[1] for line in lines(drawing)} >= set(DASHES)


def test_the_host_stands_in_for_devices_that_nobody_read():
    view = CaseView(watched_record(monitoring=watched(series=readings(0))))
    shown = labels(timeline_plot(view))
    assert "host CPU, %" in shown and "host memory, GiB" in shown
    assert "power, W" not in shown
    assert unread(view) == "No reading of power or temperature."


def test_without_readings_there_is_a_sentence_and_no_plot():
    assert unread(CaseView(make_record())) == "Nothing over time: there was no monitor."
    silent = CaseView(make_record(monitoring=watched(series=())))
    assert timeline_plot(silent) is None
    assert unread(silent) == "No reading of utilisation or power or temperature or memory."


def test_a_withheld_speed_is_not_to_be_read_from_the_plot(records):
    """There is none: readings show by their rise when a computation began and ended, and an axis when all did."""
    view = CaseView(records["cheated"])
    assert view.record.monitoring.series and timeline_plot(view) is None
    assert unread(view) == "Everything over time withheld: FAIL_HONESTY."


def test_a_line_breaks_where_readings_are_missing():
    series = next(series for series in readings(1) if series.name == "power")
    kept = [index for index in range(200) if not 80 <= index < 120]
    gappy = series.model_copy(
        update={"times": tuple(series.times[i] for i in kept), "values": tuple(series.values[i] for i in kept)}
    )
    whole = CaseView(watched_record(monitoring=watched(series=(series,))))
    broken = CaseView(watched_record(monitoring=watched(series=(gappy,))))
    assert len(lines(timeline_plot(broken))) == len(lines(timeline_plot(whole))) + 1


def test_short_rounds_of_a_long_run_are_looked_at_closely():
    series = readings(1, seconds=1000.0)
    brief = {"framework": None, "engine": measurement((4.3, 4.3), 0.9816, begun=900.0)}
    view = CaseView(watched_record(seconds=1000.0, monitoring=watched(series=series, window=None), **brief))
    ticks = [float(label) for label in labels(timeline_plot(view)) if label in {str(n) for n in range(870, 950, 10)}]
    assert len(ticks) >= 2
    assert "100" in labels(timeline_plot(view)), "utilisation keeps its axis"


@pytest.mark.parametrize("count", [1, 2])
def test_hardly_any_reading_still_makes_a_legal_plot(count):
    moments = {"times": tuple(BEGUN + n for n in range(count)), "values": (0.0,) * count}
    series = tuple(one.model_copy(update=moments) for one in readings(1))
    ET.fromstring(timeline_plot(CaseView(watched_record(monitoring=watched(series=series)))))
