"""Plots: legal XML, round ticks, and readable labels."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from proofmark.inference.outcome.record import Accuracy
from reports.charts.axes import ROOM, Area, apart, counting_axis, linear_axis
from reports.charts.panels import time_axis
from suites.inference.report.plots import accuracy_plot, plots, throughput_plot
from suites.inference.report.view import CaseView

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0, 415.4], ["0", "200", "400", "600"]),
        ([0, 12698.7], ["0", "5,000", "10,000", "15,000"]),
        ([0.97, 0.9825], ["0.970", "0.975", "0.980", "0.985"]),
        ([0, 10], ["0.0", "2.5", "5.0", "7.5", "10.0"]),
        ([0.1, 1], ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        ([0, 400_000], ["0", "100,000", "200,000", "300,000", "400,000"]),
        ([0, 9_000_000], ["0", "2.5 M", "5.0 M", "7.5 M", "10.0 M"]),
        ([-30e9, 0], ["-30 G", "-20 G", "-10 G", "0"]),
        ([0, 1e-9], ["0", "0.25e-9", "0.50e-9", "0.75e-9", "1.00e-9"]),
        ([0, 4e27], ["0", "1e27", "2e27", "3e27", "4e27"]),
    ],
)
def test_ticks_are_round_and_hold_all_values(values, ticks):
    axis = linear_axis("", values)
    assert [name for _, name in axis.ticks] == ticks
    assert axis.low <= min(values) and max(values) <= axis.high


@pytest.mark.parametrize("factor", [1, 3, 7])
def test_there_is_room_for_what_ticks_are_called(factor):
    for exponent in range(-90, 90):
        names = [name for _, name in linear_axis("", [0, factor * 10.0**exponent]).ticks]
        assert len(set(names)) == len(names) and max(map(len, names)) <= ROOM, names


def test_no_panels_have_a_time_axis_all_the_same():
    assert time_axis([], 10.0, None).high == 10.0


@pytest.mark.parametrize("value", [0.0, 0.97, 1e9, -3.0])
def test_one_value_still_makes_an_axis(value):
    axis = linear_axis("", [value])
    assert axis.low < axis.high
    assert 0 <= axis.share(value) <= 1


def test_data_goes_to_pixels_with_up_upwards():
    area = Area(left=10, top=20, right=110, bottom=220)
    axis = linear_axis("", [0, 400])
    assert (area.x(axis, 0), area.x(axis, 400)) == (10, 110)
    assert (area.y(axis, 0), area.y(axis, 400)) == (220, 20)


def test_many_rounds_get_few_ticks():
    axis = counting_axis("round", 100)
    assert len(axis.ticks) <= 8
    assert axis.ticks[0] == (1, "1")


def test_labels_are_moved_apart_within_bounds():
    assert apart([50, 51, 10], 15, 0, 100) == [50, 65, 10]
    assert apart([99, 98], 15, 0, 100) == [100, 85]


def test_every_plot_is_xml_of_its_own(records):
    for record in records.values():
        for drawing in plots(CaseView(record)).values():
            root = ET.fromstring(drawing)
            assert root.tag == f"{SVG}svg"
            assert root.find(f"{SVG}title") is not None and root.find(f"{SVG}desc") is not None


def test_control_characters_leave_a_plot_legal(make_record):
    accuracy = Accuracy(metric='a\x00b<&"', target=0.5, gate=0.9, framework=0.6, framework_fp32=0.6, engine=0.6)
    ET.fromstring(accuracy_plot(CaseView(make_record(accuracy=accuracy))))


def test_accuracies_say_what_they_fall_short_of(make_record, records):
    assert "below target" in accuracy_plot(CaseView(records["fail_accuracy"]))
    exact = Accuracy(metric="top1", target=0.97000001, gate=0.999, framework_fp32=0.99, framework=0.99, engine=0.97)
    assert accuracy_plot(CaseView(make_record(accuracy=exact))).count("target 0.97000001") == 2
    near = Accuracy(metric="top1", target=0.97, gate=0.999, framework_fp32=0.99, framework=0.99, engine=0.98)
    assert "below floor" in accuracy_plot(CaseView(make_record(accuracy=near)))
    assert "below" not in accuracy_plot(CaseView(records["pass"]))


def test_no_data_no_plot(make_record, records):
    nothing = Accuracy(metric="top1", target=0.97, gate=0.999)
    assert plots(CaseView(make_record(accuracy=nothing, framework=None, engine=None))) == {}
    assert throughput_plot(CaseView(records["fail_accuracy"])) is None


def test_framework_and_engine_differ_without_colour(records):
    root = ET.fromstring(throughput_plot(CaseView(records["pass"])))
    strokes = [line.get("style").rpartition("dasharray:")[2] for line in root.iter(f"{SVG}polyline")]
    lines, legend = strokes[:4], strokes[4:]
    assert lines == legend and len(set(lines)) == 4
    names = [each.text for each in root.iter(f"{SVG}text")][-4:]
    assert names == ["framework whole", "framework core", "engine whole", "engine core"]
