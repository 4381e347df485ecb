"""Engines that misbehave: each is answered by its own verdict, and the others run all the same."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import BadDay, House, clean

EXPECTED = {
    "tiny": ("PASS", ""),
    "slow": ("PASS", ""),
    "foo_time": ("FAIL_HONESTY", "foo_time"),
    "reuses": ("FAIL_HONESTY", "memory of its previous answer"),
    "shapes": ("ERROR", "step engine_inference failed: output 0 has shape"),
    "nan": ("ERROR", "the engine's top1 is missing"),
    "random": ("FAIL_ACCURACY", "below the target"),
    "short": ("FAIL_ACCURACY", "is below 99.0% of the fp32 framework's"),
    "hard": ("FAIL_ACCURACY", "fp32 framework top1"),
    "boast": ("ERROR", "declares 1000 FLOPs per point, counted were 64"),
    "raises_compiling": ("ERROR", "step compile failed: RuntimeError: trouble in compile (vendors/fake/honest.py:"),
    "raises_running": ("ERROR", "step engine_inference failed: RuntimeError: trouble in call"),
    "segfaults": ("ERROR", "step compile failed: the case's process died of signal 11 (SIGSEGV)"),
    "is_killed": ("ERROR", "step engine_inference failed: the case's process died of signal 9 (SIGKILL)"),
    "leaves": ("ERROR", "step engine_inference failed: the case's process ended with exit code 0"),
    "dies_early": ("ERROR", "step data_and_model failed: the case's process died of signal 6 (SIGABRT)"),
}


@pytest.mark.parametrize("case", EXPECTED)
def test_each_has_its_verdict(bad_day: BadDay, case: str) -> None:
    kind, told = EXPECTED[case]
    found, reasons = bad_day.ran.verdict(case)
    assert found == kind, reasons
    assert told in reasons


def test_the_session_carries_the_gravest(bad_day: BadDay) -> None:
    assert bad_day.ran.code == 17, bad_day.ran.output
    assert bad_day.house.processes() == []


def test_all_are_in_the_summary(bad_day: BadDay) -> None:
    summary = bad_day.ran.output.partition("verdicts")[2]
    for case in EXPECTED:
        assert f"inference/{case}" in summary


def test_only_an_engine_that_raises_has_a_traceback(bad_day: BadDay) -> None:
    assert "trouble in call" in (bad_day.ran.record("raises_running").step("engine_inference").detail or "")
    assert "INTERNALERROR" not in bad_day.ran.output
    log = bad_day.ran.case_dir("raises_compiling") / "worker.log"
    assert "Traceback" in log.read_text()
    assert f"worker.log {log.relative_to(bad_day.house.root)}"[:70] in bad_day.ran.output


def test_slow_engine_is_what_binds(bad_day: BadDay) -> None:
    slow, honest = bad_day.ran.record("slow").engine, bad_day.ran.record("tiny").engine
    assert slow is not None and honest is not None
    assert slow.bound_by == "compute"
    assert slow.core.mean < 16 / 0.05 * 1.01
    assert slow.core.mean < honest.core.mean / 10


def test_steps_after_a_failure_are_not_reached(bad_day: BadDay) -> None:
    assert bad_day.ran.steps("segfaults") == {
        "init": "done",
        "data_and_model": "done",
        "framework_validation": "done",
        "export": "skipped",
        "compile": "failed",
        "engine_inference": "not_reached",
        "summary": "done",
    }


@pytest.mark.parametrize(
    "precision, code, kind, told",
    [
        ("fp16", 10, "UNSUPPORTED", "no fp16 here"),
        ("bf16", 17, "ERROR", "does not declare bf16, yet it ran"),
    ],
)
def test_undeclared_precision(house: House, precision: str, code: int, kind: str, told: str) -> None:
    ran = house.run("--precision", precision)
    found, reasons = ran.verdict()
    assert found == kind and told in reasons, (found, reasons)
    assert ran.code == code, ran.output
    clean(ran)


def test_accuracy_alone_is_exit_code_14(house: House) -> None:
    ran = house.run("--compiler", "short")
    assert ran.code == 14, ran.output
    clean(ran)


def test_dishonesty_alone_is_exit_code_15(house: House) -> None:
    assert house.run("--compiler", "reuses").code == 15


def test_loader_processes_load_and_leave(house: House) -> None:
    """A forked loader once waited for a lock that a thread of the case's process held."""
    ran = house.run("--set", "num_workers=2", "--step-timeout", "60")
    assert ran.code == 0, ran.output
    assert house.becomes_empty(10)
