"""The summary on the terminal."""

from __future__ import annotations

import re

import pytest

from proofmark.inference.outcome.record import Score
from proofmark.rules.legality import Override
from proofmark.training.outcome.record import Confirmation
from reports.terminal import WIDTH, explanations, summary_lines
from tests.reports.records import watched
from tests.training_records import make_run, make_training


def test_the_fields_of_a_valid_run(records):
    lines = summary_lines([records["pass"]])
    fields = {line[:24].strip(): line[24:] for line in lines}
    assert fields["vendor"] == "cpu"
    assert fields["batchsize"] == "64"
    assert fields["e2e_time(second)"] == "41.27 s"
    assert fields["framework whole"] == "209.3 ± 1.8 images/s (p_validation_whole)"
    assert fields["engine core"] == "415.4 ± 2.9 images/s (p_inference_core)"
    assert fields["engine bound by"] == "compute"
    assert fields["val accuracy, fp32"] == "top1 0.98250 ≥ 0.97"
    assert fields["val accuracy, fp16"] == "top1 0.98220 ≥ 0.97"
    assert fields["infer accuracy"] == "top1 0.98160 ≥ 0.97"
    assert fields["MFU"] == "30.2 %"
    assert fields["engine latency"] == "mean 8.642 ms, p50 8.531 ms, p90 9.753 ms"
    assert "VERDICT PASS" in lines


def test_values_stand_in_one_column_where_a_name_is_long():
    asked_too = make_run(confirmation=Confirmation(samples=10, metric=0.9, seconds=1.0))
    lines = summary_lines([make_training(asked_too)], 120)
    rows = lines[1 : lines.index("VERDICT PASS")]
    column = len("seed 0, the case's own model  ")
    assert all(row[column - 2 : column] == "  " and row[column] != " " for row in rows), "\n".join(rows)


def test_a_name_too_long_for_its_column_stands_apart_from_its_value(make_record):
    others = (Score(metric="calibration_error", target=0.1, better="lower", framework_fp32=0.05, engine=0.05),)
    accuracy = make_record().accuracy.model_copy(update={"others": others})
    lines = summary_lines([make_record(accuracy=accuracy)])
    assert any(line.startswith("target, engine, calibration_error  cal") for line in lines), "\n".join(lines)


def test_energy_honesty_and_the_monitor_each_have_a_line(make_record, records):
    lines = summary_lines([records["watched"]], 120)
    fields = {line[:24].strip(): line[24:] for line in lines}
    assert fields["energy"] == "timed window 13,457 J, per item 2.496 J/image (device energy counter)"
    assert fields["honesty"] == "8 of 8 checks passed"
    assert "monitor" not in fields
    assert "energy                  – (there was no monitor)" in summary_lines([records["pass"]])
    cheated = "\n".join(summary_lines([records["cheated"]]))
    assert "6 of 8 checks passed; failed: no cached answers" in cheated
    failed = make_record(monitoring=watched(failures=("it was killed",), foreign_processes=(4711,)))
    shown = [line for line in summary_lines([failed]) if line.startswith("monitor")]
    assert len(shown) == 2 and shown[1].endswith("the monitor failed: it was killed")


def test_overrides_say_what_who_and_how_grave(make_record, records):
    lines = summary_lines([records["pass"]])
    assert "INFO    batch_size: 32 -> 64 (vendors/cpu/configs/resnet50.yaml)" in lines
    assert "WARNING threads: 2, a key that the case does not have (--set)" in lines
    misspelt = Override(key="batchsize", old=None, new=2, origin="--set", kind="added", near="batch_size")
    lines = summary_lines([make_record(overrides=(misspelt,))])
    assert lines[lines.index("WARNING batchsize: 2, a key that the case does not have (--set); did you mean") + 1] == (
        "        'batch_size'?"
    )


@pytest.mark.parametrize("width", [40, WIDTH, 120])
@pytest.mark.parametrize("name", ["pass", "watched", "cheated", "fail_accuracy", "error", "long_names"])
def test_nothing_is_wider_than_the_terminal(records, name, width):
    lines = [*summary_lines([records[name]], width), *explanations([records[name]], width)]
    assert lines and all(len(line) <= width for line in lines)


def test_the_figures_are_explained_once_whatever_the_number_of_cases(records):
    text = " ".join(explanations(list(records.values()))).replace("\n", " ")
    for name in ("whole", "core", "loader", "bound by"):
        assert len(re.findall(rf"(?<=\s){name}  ", text)) == 1, text
    assert explanations([]) == []


def test_control_characters_do_not_reach_the_terminal(make_record):
    lines = summary_lines([make_record(vendor="evil\x1b[2J\nPASS")])
    assert all(line.isprintable() for line in lines)


def test_figures_that_one_reason_leaves_out_have_one_line(records):
    whole = " ".join(" ".join(summary_lines([records["unsupported"]])).split())
    assert re.search(r" engine whole – \([^)]*\); nor engine core, engine loader,", whole), whole


def test_no_case():
    assert summary_lines([]) == []
