"""Every stage that all suites share, at its bound and on both sides of it; and that both suites go by them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from proofmark.automl.outcome.verdict import judge as judge_search
from proofmark.errors import Problem
from proofmark.inference.outcome.verdict import judge
from proofmark.record.compared import Compared, Outcome, Ratio
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Contention, Flops, Identity, Monitoring, Utilisation, Verdict, VerdictKind
from proofmark.record.policy import default_policy
from proofmark.record.provenance import Chip, Peak
from proofmark.training.outcome.record import Rates
from proofmark.training.outcome.verdict import judge as judge_training
from proofmark.verdict import engine
from proofmark.verdict.stages import (
    beyond_its_cores,
    changed_log,
    damaged_lines,
    disturbances,
    illegalities,
    impossible_utilisation,
    lacks_checks_alone,
    missing_checks,
    missing_identity,
    missing_utilisation,
    parts_left_out,
    wrong_flops,
)
from tests.automl.automl_records import record as make_search
from tests.training_records import make_run, make_training
from tests.unit.records import record

DATA = Identity(name="digits", sha256="d" * 64)


def chip(achievable: float | None = None) -> Chip:
    peak = Peak(flops_per_second=1e12, precision="fp32", source="sheet", achievable=achievable)
    return Chip(name="chip", peak=peak)


UNKNOWN = Chip(name="chip", peak_missing="not in chips.yaml")


def test_what_runs_beyond_the_sessions_cores_is_named() -> None:
    seen = Contention(others=0.0, stolen=0.0, idle=0.0)
    assert beyond_its_cores(None) == beyond_its_cores(seen) == []
    (reason,) = beyond_its_cores(seen.model_copy(update={"beyond": (2, 3)}), "seed 1: ")
    assert reason.startswith("seed 1: a process of this run could use cores that the session may not (2, 3): ")
    (reason,) = beyond_its_cores(seen.model_copy(update={"beyond": tuple(range(20))}))
    assert "(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 4 more)" in reason


@pytest.mark.parametrize("judged", [judge, judge_training, judge_search])
def test_all_suites_refuse_figures_of_more_cores(judged: Callable[[Any], Verdict]) -> None:
    seen = Contention(others=0.0, stolen=0.0, idle=0.0, beyond=(7,))
    busy, measured, run = {"contention": seen}, record().engine, make_training().runs[0]
    assert measured is not None
    rounds = (measured.rounds[0].model_copy(update=busy), *measured.rounds[1:])
    given: dict[Any, CaseRecord] = {
        judge: record(engine=measured.model_copy(update={"rounds": rounds})),
        judge_training: make_training().model_copy(update={"runs": (run.model_copy(update=busy),)}),
        judge_search: make_search().model_copy(update=busy),
    }
    verdict = judged(given[judged])
    assert verdict.kind == "ERROR" and "cores that the session may not (7)" in verdict.reasons[0]


def test_the_first_stage_with_a_complaint_decides_with_all_its_complaints() -> None:
    stages: list[tuple[VerdictKind, list[str]]] = [
        (VerdictKind.ERROR, []),
        (VerdictKind.AMBIGUOUS, ["one", "two"]),
        (VerdictKind.FAIL_ACCURACY, ["three"]),
    ]
    assert engine.judge(record(), stages) == Verdict(kind=VerdictKind.AMBIGUOUS, reasons=("one", "two"))
    assert engine.judge(record(), stages[:1]) == engine.judge(record(), []) == Verdict(kind=VerdictKind.PASS)
    illegal = record(problems=(Problem(where="a.yaml", key="x", what="no"),))
    assert engine.judge(illegal, stages) == Verdict(kind=VerdictKind.FAIL_LEGALITY, reasons=("a.yaml: x: no",))


@pytest.mark.parametrize(
    "kind, expected, changes",
    [
        ("ERROR", "interrupted in compile", {"interrupted": "compile"}),
        ("INSUFFICIENT", "only some tests of the case were selected", {"partial": True}),
        ("ERROR", "1 lines of the event log are damaged", {"corrupt_lines": 1}),
        ("ERROR", "nothing identifies the data set", {"dataset": None}),
        ("ERROR", "the case declares", {"flops": Flops(declared=1.0, counted=2.0)}),
        ("ERROR", "is above 100 %", {"utilisation": Utilisation(mfu=1.5)}),
    ],
)
def test_no_run_passes_because_its_suite_forgot_a_stage(kind: str, expected: str, changes: dict[str, Any]) -> None:
    verdict = engine.judge(record(**changes), [])
    assert verdict.kind == kind and expected in verdict.reasons[0]


def compared(outcome: Outcome, **changes: Any) -> Compared:
    ratio = Ratio(metric="core", outcome=outcome, value=0.5, low=0.4, high=0.6, pairs=9)
    whole: dict[str, Any] = {"baseline": "main", "identity": None, "way": "rounds", "width": 0.05, "error": 0.01}
    return Compared(**{**whole, "metrics_of_session": 1, "ratios": (ratio,), **changes})


@pytest.mark.parametrize(
    "alone, beside, kind",
    [
        (VerdictKind.PASS, compared(Outcome.REGRESSION), VerdictKind.FAIL_PERF),
        (VerdictKind.AMBIGUOUS, compared(Outcome.REGRESSION), VerdictKind.FAIL_PERF),
        (VerdictKind.INSUFFICIENT, compared(Outcome.AMBIGUOUS), VerdictKind.INSUFFICIENT),
        (VerdictKind.FAIL_ACCURACY, compared(Outcome.SAME, problems=("it was lost",)), VerdictKind.FAIL_ACCURACY),
        (VerdictKind.PASS, compared(Outcome.SAME, problems=("it was lost",)), VerdictKind.ERROR),
    ],
)
def test_the_graver_of_a_run_and_its_comparison_decides(
    alone: VerdictKind, beside: Compared, kind: VerdictKind
) -> None:
    assert engine.judge(record(compared=beside), [(alone, ["of its own"])]).kind is kind


def test_of_equals_the_runs_own_reasons_are_told() -> None:
    held = record(compared=compared(Outcome.AMBIGUOUS))
    assert engine.judge(held, [(VerdictKind.AMBIGUOUS, ["of its own"])]).reasons == ("of its own",)


def test_a_log_that_somebody_else_wrote_into() -> None:
    assert changed_log(record()) == []
    expected = "the event log was changed by somebody else than the session: line 3"
    assert changed_log(record(changed=("line 3",))) == [expected]


def test_every_illegality_is_told() -> None:
    problems = (Problem(where="a.yaml", key="x", what="no"), Problem(where="--set", key="y", what="nor that"))
    assert illegalities(record(problems=problems)) == ["a.yaml: x: no", "--set: y: nor that"]
    assert illegalities(record()) == []


@pytest.mark.parametrize(
    "reasons, alone",
    [
        (missing_checks({"a", "b"}), True),
        (missing_checks({"a"}, "seed 1: "), True),
        ([*missing_checks({"a"}), "nothing was measured"], False),
        (["the honesty check 'a' failed"], False),
        (["the record of 'a' is missing"], False),
        ([], False),
    ],
)
def test_whether_checks_alone_are_missing(reasons: list[str], alone: bool) -> None:
    verdict = Verdict(kind=VerdictKind.ERROR, reasons=tuple(reasons))
    assert lacks_checks_alone(verdict) is alone


def test_damaged_lines_are_counted_and_named() -> None:
    assert damaged_lines(record(), "the event log") == []
    assert damaged_lines(record(corrupt_lines=2), "the event log") == ["2 lines of the event log are damaged"]
    named = record(corrupt_lines=2, damaged=("a, line 1: not JSON", "b, line 2: no event"))
    expected = "2 lines of the logs are damaged: a, line 1: not JSON; b, line 2: no event"
    assert damaged_lines(named, "the logs") == [expected]


def test_parts_left_out() -> None:
    assert parts_left_out(record(partial=True)) == ["only some tests of the case were selected"]
    assert "(-x, --maxfail)" in parts_left_out(record(stopped=True))[0]
    assert parts_left_out(record()) == []


@pytest.mark.parametrize(
    "dataset, weights, loaded, expected",
    [
        (DATA, DATA, True, []),
        (DATA, None, False, []),
        (DATA, DATA, False, []),
        (DATA, None, True, ["nothing identifies the weights"]),
        (None, DATA, True, ["nothing identifies the data set"]),
        (None, None, True, ["nothing identifies the data set", "nothing identifies the weights"]),
        (None, None, False, ["nothing identifies the data set"]),
    ],
)
def test_missing_identity(
    dataset: Identity | None, weights: Identity | None, loaded: bool, expected: list[str]
) -> None:
    assert missing_identity(dataset, weights, weights_loaded=loaded) == expected


UNCOUNTED = "the FLOPs were not counted"
NO_MFU = "MFU is missing, though the chip's peak is known"


@pytest.mark.parametrize(
    "flops, mfu, known, expected",
    [
        (Flops(declared=1.0, counted=1.0), 0.5, True, []),
        (Flops(declared=1.0, counted=1.0), None, False, []),
        (Flops(declared=1.0, counted=0.0), 0.5, True, []),  # wrong_flops has something to say of it
        (Flops(declared=1.0), 0.5, True, [UNCOUNTED]),
        (None, 0.5, True, [UNCOUNTED]),
        (Flops(declared=1.0, counted=1.0), None, True, [NO_MFU]),
        (None, None, True, [UNCOUNTED, NO_MFU]),
    ],
)
def test_missing_utilisation(flops: Flops | None, mfu: float | None, known: bool, expected: list[str]) -> None:
    assert missing_utilisation(flops, Utilisation(mfu=mfu), chip() if known else UNKNOWN) == expected


@pytest.mark.parametrize(
    "declared, counted, good",
    [
        (100.0, 100.0, True),
        (105.0, 100.0, True),
        (math.nextafter(105.0, 200.0), 100.0, False),
        (104.9, 100.0, True),
        (95.0, 100.0, True),
        (math.nextafter(95.0, 0.0), 100.0, False),
        (95.1, 100.0, True),
        # the counted is the denominator, not the declared: 100 / 105.2 is 4.9 % off, 100 / 95.2 is 5.04 % off
        (100.0, 105.2, True),
        (100.0, 105.3, False),
        (100.0, 95.24, True),
        (100.0, 95.2, False),
        (0.5, 0.5, True),
        (100.0, 0.0, False),
        (0.0, 0.0, False),
        (-1.0, -1.0, False),
    ],
)
def test_declared_flops_are_held_to_the_counted(declared: float, counted: float, good: bool) -> None:
    complaints = wrong_flops(Flops(declared=declared, counted=counted), "image")
    assert (complaints == []) is good
    if not good:
        expected = f"the case declares {declared:.4g} FLOPs per image, counted were {counted:.4g}"
        assert complaints == [f"{expected}: more than 5% of the counted apart"]


def test_flops_that_nobody_declared_or_counted_are_not_compared() -> None:
    assert wrong_flops(None, "image") == wrong_flops(Flops(declared=1.0), "image") == []


WRONG = "wrong FLOPs, a wrong peak, or a device that was not waited for"
ZERO = "the FLOPs, the peak or the clock are wrong"


@pytest.mark.parametrize(
    "mfu, achievable, expected",
    [
        (None, 1.0, []),
        (5e-324, None, []),
        (0.0, None, [f"MFU 0.0% is not above 0: {ZERO}"]),
        (-0.03, None, [f"MFU -3.0% is not above 0: {ZERO}"]),
        (1.0, None, []),
        (math.nextafter(1.0, 2.0), None, [f"MFU 100.00000000000003% is above 100 %: {WRONG}"]),
        (1.0004, None, [f"MFU 100.04% is above 100 %: {WRONG}"]),
        (1.5, 1e9, [f"MFU 150.0% is above 100 %: {WRONG}"]),
        (0.5, 5e11, []),
        (0.49, 5e11, []),
        (0.51, 5e11, ["MFU 51.0%, 5.1e+11 FLOP/s, is above the chip's measured achievable 5e+11 FLOP/s"]),
        (0.1, 0.0, ["MFU 10.0%, 1e+11 FLOP/s, is above the chip's measured achievable 0 FLOP/s"]),
        (0.99, None, []),
    ],
)
def test_mfu_is_within_what_the_chip_can_do(mfu: float | None, achievable: float | None, expected: list[str]) -> None:
    assert impossible_utilisation(Utilisation(mfu=mfu), chip(achievable)) == expected


def test_an_unknown_chip_has_no_peak_to_be_held_to_but_its_mfu_is_a_share_all_the_same() -> None:
    assert impossible_utilisation(Utilisation(mfu=1.0), UNKNOWN) == []
    assert len(impossible_utilisation(Utilisation(mfu=1.1), UNKNOWN)) == 1


def test_disturbances() -> None:
    seen = Monitoring(samples=1, window=None)
    hot = seen.model_copy(update={"throttled": ("heat", "power")})
    shared = seen.model_copy(update={"foreign_processes": (7, 9)})
    throttled = "a device was throttled while it was timed: heat, power"
    others = "other processes were on a device while it was timed: 7, 9"
    noise = default_policy().noise
    assert disturbances(None, noise) == disturbances(seen, noise) == []
    assert disturbances(hot, noise) == [throttled] and disturbances(shared, noise) == [others]
    assert disturbances(hot.model_copy(update={"foreign_processes": (7, 9)}), noise) == [throttled, others]


@pytest.mark.parametrize("share, expected", [(0.01, []), (0.02, ["0.02 of the readings: heat"])])
def test_a_moment_of_heat_in_hours_is_no_disturbance(share: float, expected: list[str]) -> None:
    seen = Monitoring(samples=9, window=None, throttled=("heat",), throttled_share=share)
    assert [line.partition(" in ")[2] for line in disturbances(seen, default_policy().noise)] == expected


def judged_training(**changes: Any) -> Verdict:
    alike = Rates(raw=10.0, no_eval=10.0, pure_compute=10.0)  # core is held to the peak, too
    return judge_training(make_training(make_run(rates=alike), **changes))


def judged_inference(**changes: Any) -> Verdict:
    return judge(record(**changes))


GOOD = {"flops": Flops(declared=1e9, counted=1e9), "chip": chip(8e11), "utilisation": Utilisation(mfu=0.1)}


@pytest.mark.parametrize("judged", [judged_inference, judged_training])
@pytest.mark.parametrize(
    "kind, changes",
    [
        ("PASS", {}),
        ("PASS", {"flops": Flops(declared=1.05e9, counted=1e9)}),
        ("PASS", {"flops": Flops(declared=1e9, counted=1.052e9)}),
        ("ERROR", {"flops": Flops(declared=1.0501e9, counted=1e9)}),
        ("ERROR", {"flops": Flops(declared=1e9, counted=0.952e9)}),
        ("ERROR", {"flops": Flops(declared=1e9)}),
        ("PASS", {"utilisation": Utilisation(mfu=0.8)}),
        ("ERROR", {"utilisation": Utilisation(mfu=0.0)}),
        ("ERROR", {"utilisation": Utilisation(mfu=-0.1)}),
        ("ERROR", {"utilisation": Utilisation(mfu=0.81)}),
        ("ERROR", {"utilisation": Utilisation(mfu=1.01), "chip": UNKNOWN}),
        ("ERROR", {"utilisation": Utilisation(reason="nobody knows")}),
        ("PASS", {"utilisation": Utilisation(reason="no peak"), "chip": UNKNOWN}),
        ("ERROR", {"dataset": None}),
        ("ERROR", {"corrupt_lines": 1}),
        ("INSUFFICIENT", {"partial": True}),
        ("FAIL_LEGALITY", {"problems": (Problem(where="a", key="b", what="c"),)}),
    ],
)
def test_both_suites_say_the_same(judged: Callable[..., Verdict], kind: str, changes: dict[str, Any]) -> None:
    assert judged(**{**GOOD, **changes}).kind == kind
