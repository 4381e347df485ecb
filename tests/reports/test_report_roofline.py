"""The chip's limits: drawn as far as they are known, and no further."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from proofmark.record.parts import Utilisation
from proofmark.record.provenance import Chip, Peak
from reports.charts.axes import decade_axis, power_of_ten
from suites.inference.report.roofline import roofline_plot, why_no_roofline
from suites.inference.report.view import CaseView
from tests.reports.records import watched_record

SVG = "{http://www.w3.org/2000/svg}"
PEAK = Peak(flops_per_second=9.89e14, precision="bf16", source="datasheet")


def shown(view: CaseView) -> str:
    return " | ".join(element.text for element in ET.fromstring(roofline_plot(view)).iter(f"{SVG}text"))


def test_the_measured_level_begins_at_the_memorys_roof():
    view = CaseView(watched_record())
    for content in ("measured 69.44 GFLOP/s, 30.2 %", "memory 307.0 GB/s", "fp16 dense peak 230.0", "achievable 190.0"):
        assert content in shown(view)
    assert "at least 0.226 FLOP per byte" in roofline_plot(view)
    assert "not counted" in why_no_roofline(view)


def test_without_bandwidth_there_is_a_scale():
    view = CaseView(watched_record(chip=Chip(name="H200", peak=PEAK), utilisation=Utilisation(mfu=0.004)))
    assert "measured 3.956 TFLOP/s, 0.400 %" in shown(view)
    assert "bf16 dense peak 989.0 TFLOP/s" in shown(view)
    assert "achievable" not in shown(view) and "byte" not in shown(view)
    assert why_no_roofline(view) == "No memory roof: the memory bandwidth of H200 is not known."


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("one_round", "No roofline: no peak for this chip at fp16."),
        ("cheated", "No roofline: withheld: FAIL_HONESTY."),
    ],
)
def test_nothing_is_drawn_without_a_peak_or_a_valid_speed(records, name, reason):
    view = CaseView(records[name])
    assert roofline_plot(view) is None
    assert why_no_roofline(view) == reason


def test_decades():
    assert [power_of_ten(n) for n in (-2, 0, 2, 3, 9, 11, 14, 30)] == [
        "0.01", "1", "100", "1 k", "1 G", "100 G", "100 T", "1e30",
    ]  # fmt: skip
    axis = decade_axis("FLOP/s", 3e9, 2e15)
    assert [name for _, name in axis.ticks] == ["10 G", "100 G", "1 T", "10 T", "100 T", "1 P"]
    assert len(decade_axis("FLOP/s", 1.0, 1e18).ticks) <= 7
    assert axis.share(3e9) == 0 and axis.share(2e15) == 1
