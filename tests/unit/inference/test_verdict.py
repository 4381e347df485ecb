"""Every way to a refusal, each by a record that is good but for one thing."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.errors import Problem
from proofmark.inference.outcome.record import STEPS, Measurement, RunRecord
from proofmark.inference.outcome.rounds import WITHIN
from proofmark.inference.outcome.verdict import ALIKE, REQUIRED_CHECKS, TIMED_CHECKS, judge
from proofmark.measuring.mixed import ENOUGH
from proofmark.measuring.statistics import rate
from proofmark.measuring.window import FOO_TIME_EXPECTED
from proofmark.record.parts import Check, Contention, Flops, Monitoring, Utilisation, Verdict, VerdictKind
from proofmark.record.provenance import Chip, Peak
from proofmark.verdict.engine import exit_code
from proofmark.verdict.stages import FLOPS_TOLERANCE
from proofmark.wall.isolation import Isolation
from tests.unit.records import accuracy, checks, measurement, record, steps

SKIPPED = {name: {"status": "skipped"} for name in ("export", "compile", "engine_inference")}
OTHER = {"metric": "map_50", "target": 0.4, "framework_fp32": 0.49, "framework": 0.49, "engine": 0.49}

FRAMEWORK_ONLY: dict[str, Any] = {
    "compiler": None,
    "engine": None,
    "steps": steps(**SKIPPED),
    "accuracy": accuracy(engine=None),
}
NO_VALIDATION: dict[str, Any] = {
    "framework": None,
    "steps": steps(framework_validation={"status": "skipped"}, export={"status": "skipped"}),
    "accuracy": accuracy(framework_fp32=None, framework=None),
    "flops": Flops(declared=1e9),
}
FOO_TIME = measurement({"foo_seconds": 0.25})
ONCE: dict[str, Any] = {"config": {"repeat": 1}}
FAILED = {"status": "failed", "reason": "broke", "kind": "error"}
UNDECLARED = {"status": "failed", "reason": "no int8", "kind": "unsupported"}
UNREACHED = {"status": "not_reached"}
PROBLEM = Problem(where="f.yaml", key="seed", what="is a parameter")


def scattered(*core_seconds: float) -> Measurement:
    """Rounds of 100 items that took so long to compute."""
    timed = [{"core_seconds": seconds, "whole_seconds": 2 * seconds} for seconds in core_seconds]
    rates = rate([100] * len(core_seconds), core_seconds)
    return measurement(*timed, count=len(timed)).model_copy(update={"core": rates})


def beside(**shares: float) -> Measurement:
    """Rounds while others were at work."""
    seen = Contention(**{"stolen": 0.0, **shares})
    return measurement(*[{"contention": seen}] * 3)


def clocked(measured: Measurement, *clocks: float) -> Measurement:
    """The same rounds at several clocks of the processor."""
    timed = [
        each.model_copy(update={"contention": Contention(others=0.0, stolen=0.0, idle=0.0, clock_mhz=clock)})
        for each, clock in zip(measured.rounds, clocks, strict=True)
    ]
    return measured.model_copy(update={"rounds": tuple(timed)})


def loaded(items: list[int], seconds: float) -> Measurement:
    """A loader with a rate of its own."""
    return measurement().model_copy(update={"loader": rate(items, [seconds] * len(items))})


SCARCE = Peak(flops_per_second=1e12, precision="fp32", source="sheet", achievable=9e10)


GOOD: dict[str, dict[str, Any]] = {
    "plain": {},
    "framework only": FRAMEWORK_ONLY,
    "another value that the framework has in fp32 alone": {"accuracy": accuracy(others=[{**OTHER, "framework": None}])},
    "framework only, without checks of an engine": {**FRAMEWORK_ONLY, "checks": ()},
    "unknown chip": {"chip": Chip(name="?", peak_missing="unknown"), "utilisation": Utilisation(reason="unknown")},
    "FLOPs at the tolerance": {"flops": Flops(declared=1e9 * (1 + FLOPS_TOLERANCE), counted=1e9)},
    "at the target and the gate": {"accuracy": accuracy(target=0.9702, framework_fp32=0.98, engine=0.9702)},
    "MFU of one": {
        "chip": Chip(name="c", peak=Peak(flops_per_second=1e12, precision="fp32", source="s")),
        "utilisation": Utilisation(mfu=1.0),
    },
    "core equal to whole": {"engine": measurement({"core_seconds": 1.5})},
    "a declared foo_time that no call has": {
        "engine": measurement().model_copy(update={"foo_time_reason": "it compiles late"})
    },
    "rounds somewhat apart": {"engine": scattered(1.0, 1.0, 1.08)},
    "a case whose rounds may be far apart": {
        "engine": scattered(0.6, 1.0, 2.0),
        "config": {"repeat": 3, "max_noise": 0.71},
    },
    "rounds as long as is asked for": {"engine": scattered(0.5, 0.5, 0.5), "config": {"repeat": 3, "min_seconds": 0.5}},
    "several passes": {"engine": measurement(*[{"items": 700, "passes": 7}] * 3)},
    "a batch that was filled up": {"engine": measurement(*[{"items": 704, "filled": 4, "passes": 7}] * 3)},
    "others on a machine that is nearly idle": {"engine": beside(others=0.2, idle=0.75)},
    "a monitor that reads and sleeps": {"engine": beside(others=0.0, beside=0.25, idle=0.0)},
    "others take next to nothing": {"engine": beside(others=0.0099, idle=0.0)},
    "whole at the loader's rate": {"engine": loaded([100] * 3, 1.5)},
    "whole above the loader, where the case's rates may be far apart": {
        "engine": loaded([60] * 3, 1.5),
        "config": {"repeat": 3, "max_noise": 0.7},
    },
    "whole above the loader, within its noise": {"engine": loaded([70, 100, 40], 1.5)},
    "a framework that isn't ranked": {"framework": scattered(1.0, 2.0, 3.0)},
}

# name -> (changes, kind, words of the reason)
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "illegal": ({"problems": (PROBLEM,)}, "FAIL_LEGALITY", "f.yaml: seed: is a parameter"),
    "unsupported": ({"steps": steps(compile=UNDECLARED), "engine": None}, "UNSUPPORTED", "no int8"),
    **{f"{name} failed": ({"steps": steps(**{name: FAILED})}, "ERROR", f"step {name} failed: broke") for name in STEPS},
    "failed without a reason": ({"steps": steps(export={"status": "failed"})}, "ERROR", "no reason recorded"),
    **{f"{name} not reached": ({"steps": steps(**{name: UNREACHED})}, "ERROR", "was not reached") for name in STEPS},
    "no reference": (NO_VALIDATION, "INSUFFICIENT", "nothing says that the engine's model is the case's"),
    "a check that is missing": ({"checks": checks()[1:]}, "ERROR", "is missing"),
    "no checks": ({"checks": ()}, "ERROR", "is missing"),
    "a check that failed without a word": ({"checks": checks(waits=False)}, "FAIL_HONESTY", "waits for its device"),
    "no data identity": ({"dataset": None}, "ERROR", "nothing identifies the data set"),
    "no weights identity": ({"weights": None}, "ERROR", "nothing identifies the weights"),
    "a round of few samples": ({"engine": measurement({"items": 1})}, "ERROR", "ran 1 of 100 samples"),
    "a negative MFU": ({"utilisation": Utilisation(mfu=-3.0)}, "ERROR", "is not above 0"),
    "a damaged log": ({"corrupt_lines": 2}, "ERROR", "2 lines of the event log are damaged"),
    "only some tests": ({"partial": True}, "INSUFFICIENT", "only some tests"),
    "a monitor that slows the framework": (
        {"framework": beside(others=0.0, beside=0.4, idle=0.0)},
        "ERROR",
        "the case's monitor kept 0.4 cores busy while the framework was timed, more than 0.25",
    ),
    "a monitor that slows the engine": (
        {"engine": beside(others=0.0, beside=1.0, idle=0.9)},
        "ERROR",
        "the case's monitor kept 1 cores busy while the engine was timed",
    ),
    "a part that misses the target": (
        {"partial": True, "engine": None, "accuracy": accuracy(framework_fp32=0.9, framework=None, engine=None)},
        "FAIL_ACCURACY",
        "fp32 framework top1 0.90000 is below the target 0.97",
    ),
    "a stopped session": ({"stopped": True}, "INSUFFICIENT", "the session was stopped before all of the case's tests"),
    "a stopped session that saw a wrong check": (
        {"stopped": True, "checks": checks(waits=False)},
        "FAIL_HONESTY",
        "waits for its device",
    ),
    "too few samples for a framework's p99": (
        {**FRAMEWORK_ONLY, "config": {"scenario": "latency", "repeat": 3}},
        "INSUFFICIENT",
        "needs 662 samples",
    ),
    "a framework without its other value": (
        {**FRAMEWORK_ONLY, "accuracy": accuracy(engine=None, others=[{**OTHER, "framework": None, "engine": None}])},
        "ERROR",
        "the framework's map_50 is missing or not a number: null",
    ),
    "too few samples for p99": ({"config": {"scenario": "latency", "repeat": 3}}, "INSUFFICIENT", "needs 662 samples"),
    "throttled": ({"monitoring": Monitoring(samples=9, window=None, throttled=("heat",))}, "AMBIGUOUS", "heat"),
    "not alone": ({"monitoring": Monitoring(samples=9, window=None, foreign_processes=(7,))}, "AMBIGUOUS", "7"),
    "slower when timed again": ({"disturbed": ("timed again, 2 ms",)}, "ERROR", "2 ms: run again on a quiet"),
    "rounds far apart": (
        {"engine": scattered(0.6, 1.0, 2.0)},
        "AMBIGUOUS",
        "3 rounds scatters by 70.2%, more than",
    ),
    "short rounds far apart": ({"engine": scattered(0.06, 0.1, 0.2)}, "AMBIGUOUS", "scatters by 70.2%, more than 5.0%"),
    "two rounds far apart": (
        {"engine": scattered(1.0, 3.0), "config": {"repeat": 2}},
        "AMBIGUOUS",
        "core throughput of the 2 rounds scatters",
    ),
    "one round": (
        {"engine": scattered(1.0), "config": {"repeat": 1}},
        "INSUFFICIENT",
        "one round says nothing of its own noise",
    ),
    "others on all cores": (
        {"engine": beside(others=0.3, idle=0.0)},
        "AMBIGUOUS",
        "others took 30.0% of the cores",
    ),
    "others on the cores that are left": (
        {"engine": beside(others=0.011, idle=0.5)},
        "AMBIGUOUS",
        "1.1% of the cores while it was timed, more than 1.0%, and 50.0% were idle",
    ),
    "a host that takes the cores": (
        {"engine": beside(others=0.1, stolen=0.1, idle=0.0)},
        "AMBIGUOUS",
        "(10.0% the host of this virtual machine)",
    ),
    "a clock that falls": (
        {"engine": clocked(scattered(0.6, 1.0, 2.0), 3000.0, 2000.0, 2500.0)},
        "AMBIGUOUS",
        "clock went from 3000 to 2000 MHz",
    ),
    "measured twice": (
        {"engine": scattered(0.6, 1.0, 2.0).model_copy(update={"repeated": ("the moon was full",)})},
        "AMBIGUOUS",
        "measured before (1): the moon was full",
    ),
    "rounds shorter than asked for": (
        {"engine": scattered(0.5, 0.49, 0.5), "config": {"repeat": 3, "min_seconds": 0.5}},
        "ERROR",
        "round 2 was timed for 0.49 s of compute, 0.5 s are asked for",
    ),
    "a pass that is half filled up": (
        {"engine": measurement({"items": 200, "filled": 50, "passes": 2})},
        "ERROR",
        "ran 150 of 200 samples",
    ),
    "more that fills a batch up than a batch has": (
        {"engine": measurement({"items": 200, "filled": 100, "batches": 2})},
        "ERROR",
        "engine round 1 was filled up with 100 samples that came once more: a whole batch or more",
    ),
    "a pass that is missing": ({"engine": measurement({"items": 100, "passes": 2})}, "ERROR", "ran 100 of 200 samples"),
    "a loader that nobody measured": (
        {"engine": measurement().model_copy(update={"loader": None})},
        "ERROR",
        "the loader was not measured",
    ),
    "a round in which nobody watched the machine": (
        {"engine": measurement({}, {"contention": None})},
        "ERROR",
        "round 2 does not say what else the machine did (contention)",
    ),
    "whole above the loader": ({"engine": loaded([60] * 3, 1.5)}, "ERROR", "is above loader 40, which it contains"),
    "whole above core": (
        {"engine": measurement().model_copy(update={"core": rate([60] * 3, [1.0] * 3)})},
        "ERROR",
        "is above core 60, which it contains",
    ),
    "the framework's rounds far apart": (
        {**FRAMEWORK_ONLY, "framework": scattered(1.0, 2.0, 3.0)},
        "AMBIGUOUS",
        "on a quiet machine",
    ),
    "interrupted": ({"interrupted": "compile"}, "ERROR", "interrupted in step compile"),
    "engine not measured": ({"engine": None}, "ERROR", "nothing was measured"),
    "framework not measured": ({**FRAMEWORK_ONLY, "framework": None}, "ERROR", "nothing was measured"),
    "a round is missing": ({"engine": measurement(count=2)}, "ERROR", "2 of 3 rounds"),
    "a round too many": ({"engine": measurement(count=4)}, "ERROR", "4 of 3 rounds"),
    "engine accuracy missing": ({"accuracy": accuracy(engine=None)}, "ERROR", "the engine's top1 is missing"),
    "fp32 accuracy missing": (
        {"accuracy": accuracy(framework_fp32=None)},
        "ERROR",
        "the fp32 framework's top1 is missing",
    ),
    "round's accuracy missing": (
        {"engine": measurement({}, {"accuracy": None})},
        "ERROR",
        "engine round 2: accuracy is missing",
    ),
    "dishonest": ({"dishonest": ("foo_time",)}, "FAIL_HONESTY", "foo_time"),
    "foo_time that nobody declared": ({"engine": FOO_TIME}, "FAIL_HONESTY", "0.25 s of foo_time; expected 0.0"),
    "foo_time that the compiler declares": (
        {"engine": FOO_TIME.model_copy(update={"foo_time_reason": "it compiles late"})},
        "INSUFFICIENT",
        "0.25 s of foo_time in 3 s of compute, which nobody can check: it compiles late",
    ),
    "core above whole": ({"engine": measurement({"core_seconds": 1.6})}, "ERROR", "engine round 1: core time 1.6 s"),
    "framework's core above whole": (
        {"framework": measurement({}, {"core_seconds": 1.6})},
        "ERROR",
        "framework round 2: core time",
    ),
    "no core time": ({"engine": measurement({"core_seconds": 0.0})}, "ERROR", "engine round 1: core time"),
    "negative core time": ({"engine": measurement({"core_seconds": -1.0})}, "ERROR", "engine round 1: core time"),
    "FLOPs nobody counted": ({"flops": Flops(declared=1e9)}, "ERROR", "the FLOPs were not counted"),
    "FLOPs declared too high": (
        {"flops": Flops(declared=1.06e9, counted=1e9)},
        "ERROR",
        "more than 5% of the counted apart",
    ),
    "FLOPs declared too low": (
        {"flops": Flops(declared=0.94e9, counted=1e9)},
        "ERROR",
        "more than 5% of the counted apart",
    ),
    "MFU above one": ({"utilisation": Utilisation(mfu=1.01)}, "ERROR", "MFU 101.0% is above 100 %"),
    "above what is achievable": (
        {"chip": Chip(name="c", peak=SCARCE), "utilisation": Utilisation(mfu=0.1)},
        "ERROR",
        "above the chip's measured achievable",
    ),
    "a lower one above its target": (
        {"accuracy": accuracy(better="lower", target=0.5, framework_fp32=0.49, framework=0.49, engine=0.51)},
        "FAIL_ACCURACY",
        "engine top1 0.51000 is above the target 0.5",
    ),
    "a lower one above the gate": (
        {"accuracy": accuracy(better="lower", target=30.0, framework_fp32=20.0, framework=20.0, engine=20.3)},
        "FAIL_ACCURACY",
        "engine top1 20.30000 is above 101.0% of the fp32 framework's 20.00000 (20.20000)",
    ),
    "a negative one below the gate": (
        {"accuracy": accuracy(target=-6.0, framework_fp32=-5.0, framework=-5.0, engine=-5.1)},
        "FAIL_ACCURACY",
        "engine top1 -5.10000 is below 101.0% of the fp32 framework's -5.00000 (-5.05000)",
    ),
    "another value below its target": (
        {"accuracy": accuracy(others=[{**OTHER, "target": 0.5}])},
        "FAIL_ACCURACY",
        "engine map_50 0.49000 is below the target 0.5",
    ),
    "another value that is missing": (
        {"accuracy": accuracy(others=[{**OTHER, "engine": None}])},
        "ERROR",
        "the engine's map_50 is missing or not a number: null",
    ),
    "engine below target": (
        {"accuracy": accuracy(framework_fp32=0.975, framework=0.975, engine=0.9699)},
        "FAIL_ACCURACY",
        "engine top1 0.96990 is below the target",
    ),
    "engine hardly below target": (
        {"accuracy": accuracy(framework_fp32=0.975, framework=0.975, engine=0.969996)},
        "FAIL_ACCURACY",
        "engine top1 0.969996 is below the target 0.97",
    ),
    "engine hardly below the gate": (
        {"accuracy": accuracy(target=0.9, framework_fp32=0.98, framework=0.98, engine=0.970199)},
        "FAIL_ACCURACY",
        "engine top1 0.970199 is below 99.0% of the fp32 framework's 0.98000 (0.970200)",
    ),
    "fp32 below target": (
        {"accuracy": accuracy(framework_fp32=0.96)},
        "FAIL_ACCURACY",
        "fp32 framework top1 0.96000 is below the target",
    ),
    "framework at the tested precision below target": (
        {**FRAMEWORK_ONLY, "accuracy": accuracy(engine=None, framework=0.96)},
        "FAIL_ACCURACY",
        "framework top1 0.96000 is below the target",
    ),
    "engine below the gate": (
        {"accuracy": accuracy(framework_fp32=0.999, engine=0.98)},
        "FAIL_ACCURACY",
        "is below 99.0% of the fp32 framework's",
    ),
    "engine below a stricter gate": (
        {"accuracy": accuracy(gate=0.999, framework_fp32=0.98, engine=0.978)},
        "FAIL_ACCURACY",
        "is below 99.9% of the fp32 framework's",
    ),
    "engine below target without validation": (
        {**NO_VALIDATION, "accuracy": accuracy(framework_fp32=None, framework=None, engine=0.5)},
        "FAIL_ACCURACY",
        "engine top1 0.50000",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_good(name: str) -> None:
    assert judge(record(**GOOD[name])) == Verdict(kind=VerdictKind.PASS)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    changes, kind, expected = REFUSED[name]
    made = record(**changes)
    verdict = judge(made)
    assert verdict.kind == kind, verdict
    assert any(expected in reason for reason in verdict.reasons), verdict.reasons
    made.save(tmp_path / "record.json")
    assert judge(RunRecord.load(tmp_path / "record.json")) == verdict


def test_the_checks_that_there_must_be() -> None:
    assert {
        "no memorised data",
        "no cached answers",
        "answers new inputs",
        "waits for its device",
        "leaves its inputs alone",
        "no faster when timed",
    } <= REQUIRED_CHECKS
    assert {"no slower when fresh", "answers alike when timed"} == TIMED_CHECKS


def of_framework(name: str) -> Check:
    return Check(name=f"{name} (framework)", passed=True, figure=1.0, bound=1.1, meaning="something")


@pytest.mark.parametrize("alone", [False, True])
def test_a_framework_on_a_vendors_device_is_held_as_an_engine_is(alone: bool) -> None:
    """All of an engine's checks where it is what is ranked, otherwise those of its answers."""
    needed = sorted(REQUIRED_CHECKS | TIMED_CHECKS) if alone else [ALIKE]
    made = {**(FRAMEWORK_ONLY if alone else {}), "isolation": {"framework": Isolation(kind="wall")}}
    made |= {"framework": measurement(*[{"batches": ENOUGH}] * 3), "framework_held": True}
    own = () if alone else checks()
    assert judge(record(**made, checks=(*own, *map(of_framework, needed)))).kind == "PASS"
    for name in needed:
        others = [of_framework(other) for other in needed if other != name]
        verdict = judge(record(**made, checks=(*own, *others)))
        assert verdict.reasons == (f"the honesty check '{name} (framework)' is missing",)
    old = {**made, "framework_held": False}
    assert judge(record(**old, checks=own)).kind == "PASS", "of before there were such checks"


@pytest.mark.parametrize("name", ["framework", "engine"])
def test_whose_rounds_are_at_fault(name: str) -> None:
    short = record(**{name: measurement({"items": 100, "passes": 2})})
    assert judge(short).reasons == (f"{name} round 1 ran 100 of 200 samples",)
    slow = record(**{name: measurement({"foo_seconds": 0.5})})
    assert judge(slow).reasons == (f"the {name} reports 0.5 s of foo_time; {FOO_TIME_EXPECTED}",)


@pytest.mark.parametrize("batches, needed", [(ENOUGH - 1, False), (ENOUGH, True)])
@pytest.mark.parametrize("name", sorted(TIMED_CHECKS))
def test_checks_of_fresh_batches_there_must_be_where_there_are_some(name: str, batches: int, needed: bool) -> None:
    left = tuple(check for check in checks() if check.name != name)
    timed = measurement(*[{"batches": batches}] * 3)
    missing = f"the honesty check '{name}' is missing"
    assert (missing in judge(record(checks=left, engine=timed)).reasons) is needed


@pytest.mark.parametrize(
    "expected, changes",
    [
        ("nothing was measured", {"engine": None}),
        ("the loader was not measured", {"engine": measurement().model_copy(update={"loader": None})}),
        ("2 lines of the event log are damaged", {"corrupt_lines": 2}),
        ("one round says nothing of its own noise: --repeat 3 or more", {"engine": measurement(count=1), **ONCE}),
        ("no framework validation: nothing says that the engine's model is the case's", NO_VALIDATION),
        ("step summary failed: no reason recorded", {"steps": steps(summary={"status": "failed"})}),
        ("compile", {"steps": steps(compile={"status": "failed", "kind": "unsupported"})}),
        ("the engine's top1 is missing or not a number: null", {"accuracy": accuracy(engine=None)}),
        ("the fp32 framework's top1 is missing or not a number: null", {"accuracy": accuracy(framework_fp32=None)}),
        ("engine top1 0.10000 is below the target 0.97", {"accuracy": accuracy(engine=0.1)}),
        (
            "fp32 framework top1 0.10000 is below the target 0.97",
            {"accuracy": accuracy(framework_fp32=0.1, engine=1.0)},
        ),
    ],
)
def test_a_reason_is_told_in_these_words(expected: str, changes: dict[str, Any]) -> None:
    assert judge(record(**changes)).reasons[0] == expected


def test_what_to_do_about_noise_is_told_last(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, last = judge(record(engine=scattered(0.6, 1.0, 2.0))).reasons
    assert last == "run again on a quiet machine, or longer (--min-seconds 4)", "twice what the longest took"
    monkeypatch.setattr("proofmark.inference.outcome.verdict.LONGEST", 3)
    *_, last = judge(record(engine=scattered(0.6, 1.0, 2.0))).reasons
    assert last == "run again on a quiet machine", "four seconds may not be asked for"
    *_, last = judge(record(engine=beside(others=0.3, idle=0.0))).reasons
    assert last == "run again on a quiet machine", "longer would be no better"


def test_a_quiet_repetition_is_a_pass() -> None:
    quiet = measurement().model_copy(update={"repeated": ("the rounds lay 30 % apart",)})
    assert judge(record(engine=quiet)).kind is VerdictKind.PASS


def test_a_round_of_no_time_is_impossible_and_not_too_short() -> None:
    made = record(engine=measurement({"core_seconds": 0.0}), config={"repeat": 3, "min_seconds": 0.5})
    assert [reason for reason in judge(made).reasons if "min_seconds" in reason] == []


@pytest.mark.parametrize("seconds, kind", [(0.99, "ERROR"), (0.99996, "ERROR"), (1.0, "PASS"), (1.01, "PASS")])
def test_a_round_lasts_as_long_as_was_asked_for(seconds: float, kind: str) -> None:
    rounds = [{"core_seconds": seconds}] * 3
    verdict = judge(record(engine=measurement(*rounds), config={"repeat": 3, "min_seconds": 1.0}))
    assert verdict.kind == kind
    if kind == "ERROR":
        assert verdict.reasons[0] == f"round 1 was timed for {seconds:g} s of compute, 1 s are asked for (min_seconds)"


@pytest.mark.parametrize("stage", ["loader", "core"])
def test_whole_is_at_most_what_it_contains_and_its_noise(stage: str) -> None:
    made = measurement()
    bound = 40.0 * (1 + WITHIN)
    for value, kind in ((bound * 0.99, "PASS"), (bound, "PASS"), (math.nextafter(bound, 99.0), "ERROR")):
        rates = {
            "whole": made.whole.model_copy(update={"value": value, "stdev": None}),
            stage: made.core.model_copy(update={"value": 40.0, "stdev": None}),
        }
        assert judge(record(engine=made.model_copy(update=rates))).kind == kind, value


def test_rounds_are_counted_from_one() -> None:
    assert judge(record(engine=measurement({}, {"items": 1}))).reasons == ("engine round 2 ran 1 of 100 samples",)
    reasons = judge(record(engine=measurement({}, {"core_seconds": 1.6}))).reasons
    assert reasons == ("engine round 2: core time 1.6 s is not within the whole 1.5 s",)


def test_a_latency_run_may_add_rounds_but_leave_none_out() -> None:
    more = {"engine": measurement(count=4).model_copy(update={"latency_ms": {"p99": 1.0}})}
    for scenario, count, kind in (
        ("latency", 3, "PASS"),
        ("latency", 4, "PASS"),
        ("latency", 5, "ERROR"),
        ("x", 3, "ERROR"),
    ):
        assert judge(record(**more, config={"scenario": scenario, "repeat": count})).kind == kind, (scenario, count)


def test_all_reasons_of_a_stage_are_told() -> None:
    verdict = judge(record(accuracy=accuracy(framework_fp32=0.9, engine=0.8)))
    assert len(verdict.reasons) == 3


def test_an_interrupt_is_one_reason() -> None:
    failed = {"status": "failed", "reason": "interrupted", "kind": "error"}
    verdict = judge(record(interrupted="compile", steps=steps(compile=failed)))
    assert verdict.reasons == ("interrupted in step compile",)


def test_the_first_stage_with_a_complaint_decides() -> None:
    stages: list[tuple[str, dict[str, Any]]] = [
        ("FAIL_LEGALITY", {"problems": (PROBLEM,)}),
        ("UNSUPPORTED", {"steps": steps(compile=UNDECLARED)}),
        ("ERROR", {"interrupted": "export"}),
        ("ERROR", {"utilisation": Utilisation(mfu=2.0)}),
        ("FAIL_ACCURACY", {"accuracy": accuracy(engine=0.1)}),
        ("FAIL_HONESTY", {"dishonest": ("foo_time",)}),
    ]
    for first in range(len(stages)):
        changes = {key: value for _, change in stages[first:] for key, value in change.items()}
        assert judge(record(**changes)).kind == stages[first][0]


scores = st.none() | st.floats(0, 1)


@given(scores, scores, scores, st.booleans(), st.sampled_from(STEPS), st.sampled_from(["done", "failed", "skipped"]))
def test_a_pass_has_every_figure_and_each_is_good_enough(
    fp32: float | None, tested: float | None, engine: float | None, compiled: bool, step: str, status: str
) -> None:
    made = record(
        compiler="engine" if compiled else None,
        accuracy=accuracy(framework_fp32=fp32, framework=tested, engine=engine),
        steps=steps(**{step: {"status": status}}),
    )
    if judge(made).kind is VerdictKind.PASS:
        assert status != "failed"
        if made.step("framework_validation").status == "done":
            assert fp32 is not None and fp32 >= 0.97
        if compiled and made.step("engine_inference").status == "done":
            assert engine is not None and engine >= 0.97
        if compiled and fp32 is not None and engine is not None:
            assert engine >= 0.99 * fp32
        assert made.measured() is not None


class TestExitCode:
    def code(self, *kinds: str) -> int:
        return exit_code([Verdict(kind=VerdictKind(kind)) for kind in kinds])

    def test_nothing_is_zero(self) -> None:
        assert self.code() == 0

    @pytest.mark.parametrize("kind", VerdictKind)
    def test_each_has_its_own(self, kind: VerdictKind) -> None:
        assert self.code(kind) == kind.exit_code
        assert len({each.exit_code for each in VerdictKind}) == len(VerdictKind)

    def test_none_is_one_of_pytests(self) -> None:
        assert not {kind.exit_code for kind in VerdictKind if kind != "PASS"} & set(range(6))

    def test_the_gravest_counts(self) -> None:
        order = (
            "PASS UNSUPPORTED AMBIGUOUS INSUFFICIENT FAIL_PERF FAIL_ACCURACY FAIL_HONESTY FAIL_LEGALITY ERROR".split()
        )
        for lighter, graver in itertools.combinations(order[1:], 2):
            assert self.code(lighter, graver) == self.code(graver, lighter, "PASS") == VerdictKind(graver).exit_code

    def test_unsupported_beside_a_pass_is_not_grave_where_the_vendor_lists_it(self) -> None:
        listed = judge(record(steps=steps(compile=UNDECLARED), expected_unsupported="no kernels"))
        assert listed.expected and listed.reasons == ("no int8", "the vendor expects it: no kernels")
        passed, error = Verdict(kind=VerdictKind.PASS), Verdict(kind=VerdictKind.ERROR)
        unlisted = Verdict(kind=VerdictKind.UNSUPPORTED)
        assert exit_code([passed, listed]) == 0
        assert exit_code([passed, unlisted]) == exit_code([passed, listed, unlisted]) == 10
        assert exit_code([listed]) == exit_code([listed, listed]) == 10, "nothing passed"
        assert exit_code([passed, listed, error]) == 17

    def test_nothing_else_is_excused_by_the_list(self) -> None:
        for changes in ({}, {"steps": steps(compile=FAILED)}, {"accuracy": accuracy(engine=0.1)}):
            same = judge(record(**changes))
            assert judge(record(**changes, expected_unsupported="no kernels")) == same and not same.expected


def test_speed_is_shown_only_where_the_result_is_valid() -> None:
    assert {kind for kind in VerdictKind if kind.shows_speed} == {"PASS", "FAIL_PERF", "AMBIGUOUS", "INSUFFICIENT"}
