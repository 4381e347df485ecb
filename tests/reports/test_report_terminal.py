"""The summary on the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.record import OverrideEntry
from reports.terminal import WIDTH, summary_lines
from tests.reports.records import steps, watched

RUN_DIR = Path("results/run-1")


def test_the_fields_of_a_valid_run(records):
    lines = summary_lines([records["pass"]], RUN_DIR)
    fields = {line[:24].strip(): line[24:] for line in lines}
    assert fields["vendor"] == "cpu"
    assert fields["batchsize"] == "64"
    assert fields["e2e_time(second)"] == "41.27"
    assert fields["framework whole"] == "209.3 ± 1.8 images/s (p_validation_whole)"
    assert fields["engine core"] == "415.4 ± 2.9 images/s (p_inference_core)"
    assert fields["bound by"] == "compute"
    assert fields["val accuracy, fp32"] == "top1 0.98250"
    assert fields["val accuracy, fp16"] == "top1 0.98220"
    assert fields["infer accuracy"] == "top1 0.98160"
    assert fields["MFU"] == "30.2 %"
    assert fields["engine latency"] == "mean 8.642 ms, p50 8.531 ms, p90 9.753 ms"
    assert "VERDICT PASS" in lines
    assert lines[-1] == "results in results/run-1"


def test_energy_honesty_and_the_monitor_each_have_a_line(make_record, records):
    lines = summary_lines([records["watched"]], RUN_DIR)
    fields = {line[:24].strip(): line[24:] for line in lines}
    assert fields["energy"] == "13,457 J, 2.496 J/image (device energy counter)"
    assert fields["honesty"] == "7 of 7 checks passed"
    assert "monitor" not in fields
    assert "energy                  – (there was no monitor)" in summary_lines([records["pass"]], RUN_DIR)
    cheated = "\n".join(summary_lines([records["cheated"]], RUN_DIR))
    assert "5 of 7 checks passed; failed: no cached answers" in cheated
    failed = make_record(monitoring=watched(failures=("it was killed",), foreign_processes=(4711,)))
    shown = [line for line in summary_lines([failed], RUN_DIR) if line.startswith("monitor")]
    assert len(shown) == 2 and shown[1].endswith("the monitor failed: it was killed")


def test_overrides_say_what_who_and_how_grave(make_record, records):
    lines = summary_lines([records["pass"]], RUN_DIR)
    assert "INFO    batch_size: 32 -> 64 (vendors/cpu/configs/resnet50.yaml)" in lines
    assert "WARNING threads: 2, a key that the case does not have (--set)" in lines
    misspelt = OverrideEntry(key="batchsize", old=None, new=2, origin="--set", kind="added", near="batch_size")
    lines = summary_lines([make_record(overrides=(misspelt,))], RUN_DIR)
    assert lines[lines.index("WARNING batchsize: 2, a key that the case does not have (--set); did you mean") + 1] == (
        "        'batch_size'?"
    )


def test_a_log_that_a_reason_names_is_found(make_record):
    failed = steps(compile={"status": "failed", "reason": "E: x (a.py:1, traceback in worker.log)", "kind": "error"})
    lines = summary_lines([make_record(steps=failed)], RUN_DIR)
    assert "worker.log results/run-1/inference/resnet50/worker.log" in lines


def test_a_verdict_comes_with_all_its_reasons(records):
    lines = summary_lines([records["fail_accuracy"]], RUN_DIR)
    after = lines[lines.index("VERDICT FAIL_ACCURACY") + 1 :]
    assert [line.startswith("  - engine top1 0.96120") for line in after[:2]] == [True, True]


@pytest.mark.parametrize("name", ["pass", "watched", "cheated", "fail_accuracy", "error", "long_names"])
def test_nothing_is_wider_than_the_terminal(records, name):
    assert all(len(line) <= WIDTH for line in summary_lines([records[name]], RUN_DIR))


def test_several_cases_end_with_their_verdicts(records):
    lines = summary_lines(list(records.values()), RUN_DIR)
    verdicts = lines[lines.index(next(line for line in lines if line.startswith("-- verdicts"))) :]
    assert any(line.startswith("UNSUPPORTED    inference/resnet50  cpu, onnxruntime, int8") for line in verdicts)


def test_control_characters_do_not_reach_the_terminal(make_record):
    lines = summary_lines([make_record(vendor="evil\x1b[2J\nPASS")], RUN_DIR)
    assert all(line.isprintable() for line in lines)


def test_no_case():
    assert summary_lines([], RUN_DIR) == ["results in results/run-1"]
