"""Runs of several seeds in one plot: told apart by colour, by dashes, by marks and by a legend, each of them alone."""

from __future__ import annotations

import itertools
import math
import re
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from proofmark.training.outcome.record import Evaluation, TrainingRecord
from reports.charts import svg
from reports.charts.lines import MARKS_APART, marked
from reports.content.view import View
from reports.site.pages import comparable
from suites.training.report.plots import training_plots
from suites.training.report.view import TrainingView
from tests.training_records import make_run, make_training

SVG = "{http://www.w3.org/2000/svg}"


def drawing(seeds: int) -> ET.Element:
    runs = []
    for seed in range(seeds):
        curve = [Evaluation(samples=n, seconds=n / 10, metric=0.95 - 0.8 / (n + 1) - 0.01 * seed) for n in range(40)]
        runs.append(make_run(seed=seed, evaluations=curve, metric=curve[-1].metric))
    return ET.fromstring(drawn(make_training(*runs)))


def drawn(record: TrainingRecord) -> str:
    return training_plots(TrainingView(record))["top1 against target"]


def style(element: ET.Element, name: str) -> str:
    found = re.search(rf"(?:^|; ){name}: ([^;]*)", element.get("style", ""))
    return found[1] if found else ""


def strokes(root: ET.Element) -> list[tuple[str, str]]:
    return [(style(line, "stroke"), style(line, "stroke-dasharray")) for line in root.iter(f"{SVG}polyline")]


def test_each_seed_has_a_colour_a_dash_a_mark_and_an_entry_in_the_legend() -> None:
    root = drawing(3)
    found = strokes(root)
    lines, legend = found[:3], found[3:]
    assert lines == legend, "the legend shows a line as it is drawn"
    assert len({colour for colour, _ in lines}) == len({dash for _, dash in lines}) == 3
    names = [element.text for element in root.iter(f"{SVG}text")]
    assert [name for name in names if name and name.startswith("seed")] == ["seed 0", "seed 1", "seed 2"]
    assert len(list(root.iter(f"{SVG}circle"))) > 1, "seed 0's marks"
    marks = {" ".join(path.get("d", "").split()[3:]) for path in root.iter(f"{SVG}path")}
    assert len(marks) == 2, "and those of the two others"


@pytest.mark.parametrize("seeds", [(None, None), (3, 3)])
def test_runs_that_no_seed_tells_apart_are_told_apart_by_their_numbers(seeds: tuple[int | None, int | None]) -> None:
    """A log of others' says no seed."""
    curves = [[Evaluation(samples=9, seconds=1.0, metric=metric)] for metric in (0.71, 0.72)]
    runs = [make_run(seed=seed, evaluations=curve) for seed, curve in zip(seeds, curves, strict=True)]
    record = make_training(*runs, make_run(seed=4))
    (said,) = (each.text for each in ET.fromstring(drawn(record)).iter(f"{SVG}desc"))
    assert said and said.startswith("run 1: 0.71000 after 9; run 2: 0.72000 after 9; seed 4: ")
    entry: Any = SimpleNamespace(variant={}, name="n", started=0.0, tone="t", verdict="v", vendor="v", profile="p")
    entry.precision = "fp32"
    figures = comparable(entry, View(record))["sections"]["figures"]
    assert {"run 1", "run 2", "seed 4"} <= figures.keys() and len(figures) == len(list(View(record).listed()))


def test_a_value_that_was_no_number_leaves_a_gap() -> None:
    metrics = (0.1, 0.2, None, 0.3, None, 0.5, 0.6)
    curve = [Evaluation(samples=1000 * n, seconds=n, metric=metric) for n, metric in enumerate(metrics)]
    root = ET.fromstring(drawn(make_training(make_run(seed=0, evaluations=curve))))
    *lines, _ = [line.get("points", "").split() for line in root.iter(f"{SVG}polyline")]
    assert [len(line) for line in lines] == [2, 1, 2], "and the last is the legend's"
    marks = {(float(mark.get("cx", 0)), float(mark.get("cy", 0))) for mark in root.iter(f"{SVG}circle")}
    (alone,) = lines[1]
    assert tuple(map(float, alone.split(","))) in {(round(x, 1), round(y, 1)) for x, y in marks}


def test_no_two_of_thirty_strokes_are_equal() -> None:
    drawn = [svg.stroke(number) for number in range(30)]
    assert len(set(drawn)) == 30
    for pair in itertools.combinations(drawn[:5], 2):
        assert len({s.colour for s in pair}) == len({s.dash for s in pair}) == len({s.mark for s in pair}) == 2


def test_marks_leave_the_dashes_between_them_to_be_seen() -> None:
    line = [(float(x), 0.0) for x in range(60, 400, 2)]
    for shift in (0.0, 1 / 3, 2 / 3):
        at = [x for x, _ in marked(line, shift)]
        assert at[-1] == line[-1][0] and at[0] == pytest.approx(60 + shift * MARKS_APART, abs=2)
        assert min(after - before for before, after in itertools.pairwise(at)) >= MARKS_APART / 2
    assert list(marked(line[:1], 0.5)) == line[:1]
    few = [(MARKS_APART * number, 1.0) for number in range(3)]
    assert list(marked(few, 0.5)) == few, "all have room"


@pytest.mark.parametrize("seeds", [1, 4, 10])
def test_a_legend_of_any_length_is_within_the_drawing(seeds: int) -> None:
    root = drawing(seeds)
    height = float(root.get("viewBox", "").split()[3])
    below = [float(text.get("y", 0)) for text in root.iter(f"{SVG}text") if (text.text or "").startswith("seed")]
    assert len(below) == seeds and max(below) < height - 4


def luminance(colour: str) -> float:
    """As WCAG has it."""
    shares = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return math.fsum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("hue", svg.HUES)
def test_lines_stand_out_from_white_paper(hue: str) -> None:
    assert 1.05 / (luminance(hue) + 0.05) >= 4.5
