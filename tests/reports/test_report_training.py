"""What a training's report says of where its time went: communication apart from compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from harness.training.record import Communication, Rank, SeedRun, Split
from reports.html import render
from reports.terminal import summary_lines
from reports.training import TrainingView
from reports.training_plots import training_plots
from tests.training_records import make_run, make_training

SVG = "{http://www.w3.org/2000/svg}"


def labels(drawing: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(drawing).iter(f"{SVG}text")]


def rank(number: int, share: float | None = None, reason: str | None = None, **changes: Any) -> Rank:
    found = Communication(share=share, steps=0 if share is None else 7, reason=reason)
    return Rank(**{"rank": number, "compute_seconds": 10.0, "data_seconds": 1.0, "communication": found, **changes})


def split(communication: float | None) -> Split:
    times = {"init": 5.0, "data": 1.0, "compute": 10.0, "evaluation": 2.0, "checkpoint": 0.0, "other": 0.5}
    return Split(**times, communication=communication)


def two(*ranks: Rank, **changes: Any) -> TrainingView:
    run: SeedRun = make_run(ranks=ranks, split=split(ranks[0].communication_seconds))
    return TrainingView(make_training(run, scale="1x2", nproc=2, **changes))


def test_communication_is_a_part_of_compute() -> None:
    drawing = training_plots(two(rank(0, 0.25), rank(1, 0.05)))["where the time went"]
    assert "compute 7.500 s, communication 2.500 s" in drawing and labels(drawing).count("communication") == 1
    widths = [
        float(bar.get("width", 0)) for bar in ET.fromstring(drawing).iter(f"{SVG}rect") if bar.get("height") == "22"
    ]
    assert widths[2] == pytest.approx(3 * widths[3], rel=1e-3), "compute without it, then communication"
    assert "url(#hatch)" in drawing


def test_communication_that_nobody_measured_has_no_stretch_but_a_reason(tmp_path: Path) -> None:
    view = two(rank(0, reason="not measured with x"), rank(1, reason="not measured with x"))
    drawing = training_plots(view)["where the time went"]
    assert "communication" not in labels(drawing) and "compute 10.00 s, evaluation" in drawing
    assert view.communication == "– (not measured with x)"
    assert "communication           – (not measured with x)" in "\n".join(summary_lines([view.record], tmp_path))


def test_communication_is_told_of_all_ranks(tmp_path: Path) -> None:
    view = two(rank(0, 0.25), rank(1, 0.05))
    assert view.communication == "5.00 % to 25.0 % of a rank's compute, measured on 7 steps of a run"
    page = render([view.record])
    assert "of it communication, s" in page and "<td>2.500</td>" in page


def test_one_process_communicates_with_nobody() -> None:
    view = TrainingView(make_training())
    assert "communication" not in dict(view.fields())
    assert "communication" not in labels(training_plots(view)["where the time went"])
