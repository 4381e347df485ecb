"""Figures: made once for each suite, named once, and walked over by every report."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

import pytest
from pydantic import ValidationError

from proofmark.inference.outcome.figures import figures
from proofmark.inference.outcome.verdict import judge
from proofmark.record.envelope import CaseRecord
from proofmark.record.figures import Figure, FigureKind
from proofmark.record.parts import Flops, VerdictKind
from proofmark.record.provenance import Chip, Peak
from proofmark.suite import Suite
from reports.allure_tree import parameters
from reports.content.view import View, shown, with_other_name
from reports.junit import properties
from reports.terminal import explanations, summary_lines
from reports.verdict_table import verdict_table
from tests.reports.records import make_record
from tests.suites_there import SUITES, page_of
from tests.training_records import make_run, make_training
from tests.unit.records import accuracy, record

OF_SUITES: dict[str, CaseRecord] = {"inference": make_record(), "training": make_training()}


def figure(**changes: object) -> Figure:
    """A speed, each part open to change."""
    values = {"key": "speed", "label": "speed", "unit": "items/s", "kind": "speed", "value": 418.1}
    return Figure.model_validate({**values, **changes})


@pytest.mark.parametrize("suite", OF_SUITES)
def test_a_name_is_given_once_and_explained_in_a_sentence(suite: str) -> None:
    headlines = [figure for figure in OF_SUITES[suite].figures if figure.headline]
    names = [figure.label for figure in headlines]
    assert headlines and len(set(names)) == len(names)
    assert all(figure.meaning.endswith(".") for figure in OF_SUITES[suite].figures if figure.meaning)


def test_flagperfs_names_stand_in_brackets() -> None:
    named = {each.key: with_other_name(each.name, each) for record in OF_SUITES.values() for each in record.figures}
    assert named["engine_core"] == "engine core (p_inference_core)"
    assert named["framework_whole"] == "framework whole (p_validation_whole)"
    rates = [named[key] for key in ("raw", "no_eval", "pure_compute")]
    assert rates == ["whole (p_whole)", "no eval (p_train)", "core (p_core)"]


@pytest.mark.parametrize("other", ["pure compute", "p_core, ", "*p_inference", "loader alone", "<th>raw<"])
def test_no_report_has_another_name(other: str) -> None:
    records = list(OF_SUITES.values())
    assert other not in page_of(records)
    assert other not in "\n".join(summary_lines(records))


@pytest.mark.parametrize("suite", OF_SUITES)
def test_one_more_figure_is_in_every_report(suite: str) -> None:
    """Whatever it is of: nothing knows it but the record."""
    added = figure(key="photons", label="photons", unit="photons/s", value=91.25, headline=True, meaning="Light.")
    record = OF_SUITES[suite].with_figures([*OF_SUITES[suite].figures, added])
    for text in ("\n".join(summary_lines([record])), page_of([record])):
        assert "91.25 photons/s" in text
    assert dict(properties(record))["photons"] == "91.25"
    assert View(record).public()["figures"][-1]["value"] == 91.25
    assert any("Light." in line for line in explanations([record]))
    failed = record.model_copy(update={"verdict": record.verdict.model_copy(update={"kind": VerdictKind.ERROR})})  # type: ignore[union-attr]
    for text in (
        "\n".join(summary_lines([failed])),
        page_of([failed]),
        str(properties(failed)),
        str(View(failed).public()),
    ):
        assert "91.25" not in text


@pytest.mark.parametrize("suite", OF_SUITES)
def test_the_first_figure_is_the_one_that_ranks(suite: str) -> None:
    record = OF_SUITES[suite]
    first = record.figures[0]
    assert first.headline and first.kind.tells_of_speed
    assert f"{first.name} {View(record).shown(first.key)}" in verdict_table([record], Path("run"), 80, False)


@pytest.mark.parametrize(
    "changes, complaint",
    [
        ({"unit": ""}, "unit"),
        ({"unit": None}, "unit"),
        ({"reason": "nobody was there"}, "expected a value, or the reason why there is none"),
        ({"value": None}, "expected a value, or the reason why there is none"),
        ({"value": "fast"}, "expected a text in unit 'text', a number in any other"),
        ({"unit": "text"}, "expected a text in unit 'text', a number in any other"),
        ({"value": float("inf")}, "finite number"),
        ({"value": -1.7e308}, "expected a number below 1e\\+300"),
        ({"value": 10**400}, "expected a number below 1e\\+300"),
        ({"key": "Not A Key"}, "key"),
        ({"kind": "secret"}, "kind"),
    ],
)
def test_a_figure_that_is_none_is_refused(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        figure(**changes)


def test_a_doubled_key_is_refused() -> None:
    record = OF_SUITES["inference"]
    with pytest.raises(ValueError, match="two figures have one key: speed"):
        record.with_figures([figure(), figure(value=1.0)])
    doubled = record.model_dump(mode="json")
    doubled["figures"].append(doubled["figures"][0])
    with pytest.raises(ValidationError, match="two figures have one key: core"):
        type(record).model_validate(doubled)


@pytest.mark.parametrize("suite", OF_SUITES)
def test_figures_come_back_from_json_as_they_were(suite: str) -> None:
    record = OF_SUITES[suite]
    assert type(record).model_validate(json.loads(record.model_dump_json())) == record
    assert all(figure.reason != "" and figure.value != "" for figure in record.figures)


@pytest.mark.parametrize(
    "made, written",
    [
        (figure(spread=2.94), "418.1 ± 2.9 items/s"),
        (figure(unit="share", value=0.168), "16.8 %"),
        (figure(unit="B", value=3 << 30), "3.00 GiB"),
        (figure(unit="FLOP/s", value=8.18e9), "8.180 GFLOP/s"),
        (figure(unit="1", value=64), "64"),
        (figure(unit="1", value=0), "0"),
        (figure(unit="text", value="compute", note="by far"), "compute (by far)"),
        (figure(unit="top1", kind=FigureKind.QUALITY, value=0.9816, target=0.97), "top1 0.98160 ≥ 0.97"),
        (figure(unit="top1", kind=FigureKind.QUALITY, value=0.969999, target=0.97), "top1 0.969999 < 0.97"),
        (figure(unit="1", kind=FigureKind.QUALITY, value=0.5, target=0.97), "0.50000 < 0.97"),
        (figure(unit="1", kind=FigureKind.QUALITY, value=20.12347, target=20.12346), "20.12347 ≥ 20.12346"),
        (figure(unit="1", kind=FigureKind.QUALITY, value=1234566, target=1234567), "1234566 < 1234567"),
        (figure(value=None, reason="too few"), "– (too few)"),
    ],
)
def test_a_figure_is_written_by_its_unit(made: Figure, written: str) -> None:
    assert str(shown(made)) == written


def test_a_suite_that_shows_nothing_of_its_own_has_envelope_and_figures() -> None:
    class Plain(Suite):
        name = "plain"

        def stages(self, record):
            return ()

        def figures(self, record):
            return ()

    suite = Plain()
    assert (suite.charts(None), suite.section(None), suite.comparisons([])) == ({}, "", ())
    assert set(parameters(OF_SUITES["training"])) == {"vendor", "chip", "scale", "precision", "profile"}
    assert SUITES["inference"].comparisons([]) == ()


def test_mfu_by_flagperfs_flops_stands_beside_ours_where_it_is_asked_for() -> None:
    chip = Chip(name="a chip", peak=Peak(flops_per_second=1e12, precision="fp32", source="its data sheet"))
    asked = Flops(declared=2 * 4.09e9, published=4.12e9, convention="flagperf")
    shown = {each.key: each for each in figures(record(chip=chip, flops=asked))}
    assert shown["mfu_published"].value == pytest.approx(4.12e9 * shown["core"].value / 1e12)  # type: ignore[operator]
    assert "mfu_published" not in {each.key for each in figures(record(chip=chip))}
    unknown = {each.key: each for each in figures(record(flops=Flops(declared=1e9, convention="flagperf")))}
    assert unknown["mfu_published"].reason == "no FLOPs of FlagPerf's are known for profile embedded"


def test_all_values_of_a_metric_are_in_every_report_each_from_its_own_side() -> None:
    error = {
        "metric": "error",
        "target": 0.2,
        "better": "lower",
        "framework_fp32": 0.1,
        "framework": 0.1,
        "engine": 0.25,
    }
    shown_only = {"metric": "map_50", "target": None, "framework_fp32": 0.5, "framework": 0.5, "engine": 0.5}
    several = record(accuracy=accuracy(better="lower", target=1.0, others=[error, shown_only]))
    several = several.model_copy(update={"verdict": judge(several)}).with_figures(figures(several))
    run = make_run(metrics={"ppl": 7.5, "bleu": None})
    aims = {"ppl": {"target": 8.0, "better": "lower"}, "bleu": {}}
    training = make_training(run, metric="top1", others=aims)
    for text in ("\n".join(summary_lines([several, training])), page_of([several, training])):
        for part in (
            "top1 0.98000 ≤ 1",
            "error 0.25000 > 0.2",
            "map_50 0.50000",
            "top1 0.95000 ≥ 0.9",
            "ppl 7.50000 ≤ 8",
        ):
            assert part in text or escape(part) in text, part
    found = dict(properties(several))
    assert found["value_error_engine"] == "0.25" and found["engine_floor_error"] == "0.101"
    assert "engine_floor_map_50" not in found and dict(properties(training))["final_metric_ppl"] == "7.5"
    assert {figure.key: figure.reason for figure in training.figures}["final_metric_bleu"] == "no evaluation"
