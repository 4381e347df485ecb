"""The verdicts, last on the terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proofmark.record.parts import Kept
from reports.verdict_table import verdict_table
from tests.reports.records import steps
from tests.training_records import make_run, make_training

RUN_DIR = Path("results/run-1")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def table(records, width=80, coloured=False):
    return verdict_table(records, RUN_DIR, width, coloured)


def flat(text: str) -> str:
    """A text without the line ends that wrapping put into it."""
    return " ".join(text.split())


def test_a_passed_case_has_the_figure_that_it_is_ranked_by(records):
    assert table([records["pass"]]).splitlines() == [
        "PASS  inference/resnet50  cpu, onnxruntime, fp16",
        "      engine core 415.4 ± 2.9 images/s",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_failed_case_has_all_reasons_whole(records, make_record, width):
    reason = "E: " + "the plugin of layer 7 wants a shape that is not there, " * 5 + "which is the end."
    failed = make_record(steps=steps(compile={"status": "failed", "reason": reason, "kind": "error"}))
    for record in (failed, records["fail_accuracy"], records["cheated"]):
        shown = table([record], width)
        assert all(len(line) <= width for line in shown.splitlines())
        for each in record.verdict.reasons:
            assert flat(each) in flat(shown)
        assert "415.4" not in shown


def test_what_is_kept_of_a_failed_run_is_named(make_record):
    kept = [("all that was measured", "events.jsonl"), ("its output", "worker.log"), ("the weights", "/cache/x.st")]
    kept.append(("a compiled engine", str(Path.cwd() / "engine")))
    stopped = steps(compile={"status": "failed", "reason": "x", "kind": "error"})
    failed = make_record(steps=stopped, kept=tuple(Kept(what=what, path=path) for what, path in kept))
    text = flat(table([failed], 120))
    where = "results/run-1/inference/resnet50"
    assert f"- kept in {where}: events.jsonl (all that was measured), worker.log (its output)" in text
    assert "- kept: /cache/x.st (the weights)" in text and "- kept: engine (a compiled engine)" in text
    trained = make_training(make_run(converged=False, metric=0.5), kept=(Kept(what="logs", path="round1"),))
    assert "- kept in results/run-1/training/tiny/1x1: round1 (logs)" in flat(table([trained], 120))


def test_trainings_and_inference_are_told_apart(records):
    missed = make_training(make_run(converged=False, metric=0.5))
    shown = table([records["pass"], make_training(), missed])
    kinds = [line.split()[:2] for line in shown.splitlines() if not line.startswith(" ")]
    assert kinds == [["PASS", "inference/resnet50"], ["PASS", "training/tiny"], ["FAIL_ACCURACY", "training/tiny"]]
    assert "time to target" in shown


def test_colours_only_where_they_are_wanted(records, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    plain, coloured = table([records["pass"]]), table([records["pass"]], coloured=True)
    assert "\x1b" not in plain
    assert "\x1b[1;32mPASS" in coloured and COLOUR.sub("", coloured) == plain
    assert "\x1b[1;31mFAIL_ACCURACY" in table([records["fail_accuracy"]], coloured=True)


def test_what_a_record_says_is_no_markup_and_no_control(make_record):
    record = make_record(vendor="[red]evil\x1b[2J\nPASS", case="[/]x")
    for coloured in (False, True):
        shown = table([record], coloured=coloured)
        assert "[red]evil" in shown and "[/]x" in shown
        assert "\x1b[2J" not in shown
