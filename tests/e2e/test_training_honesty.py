"""Vendors who do not train the case, or not in the time that they say, and one who does it his own way."""

from __future__ import annotations

from proofmark.training.outcome.checks import CLOCK, FUNCTION, METRIC, OUTSIDE, PARAMETERS, PLAN, SESSION_CLOCK, WEIGHTS
from tests.e2e.conftest import House, clean

ORDERS = "vendor.1_ranks=oracle,vendor.2_ranks=wraps,vendor.3_ranks=clock,tiny.pause=0.1"


def test_only_the_cases_own_model_in_its_own_time_passes(house: House) -> None:
    ran = house.run("--scale", "1x2", "--scale", "1x3", suite="training", trouble=ORDERS)
    assert ran.code == 15, ran.output
    clean(ran)
    oracle, wraps, clock = (ran.training(scale) for scale in ("1x1", "1x2", "1x3"))
    kinds = [str(record.verdict and record.verdict.kind) for record in (oracle, wraps, clock)]
    assert kinds == ["FAIL_HONESTY", "PASS", "FAIL_HONESTY"], ran.output
    assert [record.adapted for record in (oracle, wraps, clock)] == [("convert_model",), ("convert_model",), ()]

    failed = [[check.name for check in record.runs[0].checks if not check.passed] for record in (oracle, wraps, clock)]
    assert failed == [[PARAMETERS], [], [CLOCK]]
    assert oracle.runs[0].steps == 0, "it is not even begun"

    (run,) = wraps.runs
    wanted = {PARAMETERS, WEIGHTS, FUNCTION, METRIC, CLOCK, SESSION_CLOCK, OUTSIDE, PLAN}
    assert {check.name for check in run.checks} == wanted
    assert run.examination and run.examination.whole and run.examination.metric == run.examination.claimed
    assert not list(ran.run_dir.rglob("*.safetensors")), "what was looked at is removed"
    assert run.confirmation and run.metric == run.confirmation.metric and run.metric >= 0.9
    assert run.split and run.split.evaluation > run.confirmation.seconds > 0

    assert "its clock says that training took" in ran.output and "withheld: FAIL_HONESTY" in ran.output
    assert "its model does not have the parameters of the case's" in ran.output
