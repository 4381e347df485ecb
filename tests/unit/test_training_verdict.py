"""Verdicts on trainings that no run on this machine gives."""

from __future__ import annotations

from harness.record import VerdictKind
from tests.training_records import make_run, make_training


def test_a_metric_that_is_no_number_is_an_error() -> None:
    verdict = make_training(make_run(converged=False, metric=None)).verdict
    assert verdict is not None and verdict.kind is VerdictKind.ERROR
    assert verdict.reasons == ("the last evaluation has no top1",)
