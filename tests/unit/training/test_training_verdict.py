"""Verdicts on trainings: every rule with the record that breaks it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.errors import Problem
from proofmark.record.parts import Contention, Flops, Monitoring, Rate, Utilisation, VerdictKind
from proofmark.record.policy import default_policy
from proofmark.record.provenance import Chip, Instances, Peak
from proofmark.training.outcome.checks import CLOCK, FUNCTION, OUTSIDE, PARAMETERS, REPLAYED, SEEDED, WEIGHTS, required
from proofmark.training.outcome.examined import Examination, HandedOut
from proofmark.training.outcome.over_runs import measured, olympic_mean
from proofmark.training.outcome.record import Evaluation, Failure, Rank, Rates, SeedRun
from proofmark.training.outcome.references import held_to, soonest
from proofmark.training.outcome.shortfall import is_short
from suites.training.contract import TrainingContract
from tests.training_records import make_run, make_training, passed

DIED = Failure(ranks=(1,), cause="rank 1 was killed by signal 9")
DIVERGED = Failure(ranks=(0,), cause="rank 0: the loss of step 9 is not finite", diverged=True)
SCARCE = Chip(name="c", peak=Peak(flops_per_second=1e12, precision="fp32", source="sheet", achievable=9e10))
BROKE_OFF: dict[str, Any] = {"converged": None, "metric": None, "rates": None, "ranks": ()}


def missed() -> SeedRun:
    return make_run(converged=False, metric=0.8)


def judged(*runs: SeedRun, **changes: Any) -> tuple[str, str]:
    verdict = make_training(*runs, **changes).verdict
    assert verdict is not None
    return str(verdict.kind), "\n".join(verdict.reasons)


@pytest.mark.parametrize(
    "others, idle, max_noise, kind",
    [
        (0.3, 0.0, None, "AMBIGUOUS"),
        (0.3, 0.0, 2.0, "PASS"),
        (0.0099, 0.0, None, "PASS"),
        (0.011, 0.5, None, "AMBIGUOUS"),
        (0.3, 0.51, None, "PASS"),
    ],
)
def test_others_on_the_cores(others: float, idle: float, max_noise: float | None, kind: str) -> None:
    run = make_run(contention=Contention(others=others, stolen=0.0, idle=idle))
    found, reasons = judged(run, config={} if max_noise is None else {"max_noise": max_noise})
    assert found == kind
    assert kind == "PASS" or f"others took {others:.1%} of the cores" in reasons


@pytest.mark.parametrize(
    "stdev, max_noise, kind", [(5.1, None, "AMBIGUOUS"), (4.9, None, "PASS"), (5.1, 0.06, "PASS"), (None, None, "PASS")]
)
def test_a_pace_that_changed(stdev: float | None, max_noise: float | None, kind: str) -> None:
    run = make_run(pace=Rate(value=100.0, stdev=stdev, min=90.0, max=110.0))
    found, reasons = judged(run, config={} if max_noise is None else {"max_noise": max_noise})
    assert found == kind
    expected = "its compute by parts of the training scatters by 5.1%, more than 5.0%" if kind == "AMBIGUOUS" else ""
    assert reasons == expected


def test_nobody_watched_the_machine() -> None:
    found, reasons = judged(make_run(contention=None))
    assert (found, reasons) == ("ERROR", "nothing says what else its machines did (contention)")


def test_a_good_record_passes() -> None:
    assert judged() == ("PASS", "")


@pytest.mark.parametrize(
    "kind, expected, changes",
    [
        ("FAIL_LEGALITY", "x: target: no", {"problems": (Problem(where="x", key="target", what="no"),)}),
        ("UNSUPPORTED", "does not train at tf32", {"unsupported": "vendor acme does not train at tf32"}),
        ("ERROR", "interrupted in round 1", {"interrupted": "round 1"}),
        ("ERROR", "2 lines of the event logs are damaged", {"corrupt_lines": 2}),
        ("ERROR", "1 of 2 runs are in the record", {"repeats": 2}),
        ("ERROR", "the event log has no end", {"ended": False}),
        ("ERROR", "1 of 2 ranks left their figures", {"nproc": 2}),
        ("ERROR", "MFU 101.0% is above 100 %", {"utilisation": Utilisation(mfu=1.01)}),
        ("ERROR", "MFU -3.0% is not above 0", {"utilisation": Utilisation(mfu=-0.03)}),
        ("ERROR", "above the chip's measured achievable", {"chip": SCARCE, "utilisation": Utilisation(mfu=0.1)}),
        ("ERROR", "MFU is missing, though the chip's peak is known", {"chip": SCARCE, "utilisation": Utilisation()}),
        ("ERROR", "declares 1000 FLOPs per point and step", {"flops": Flops(declared=1e3, counted=2e3)}),
        ("ERROR", "more than 5% of the counted apart", {"flops": Flops(declared=1e3, counted=1053)}),
        ("ERROR", "the FLOPs were not counted", {"flops": Flops(declared=1e3)}),
        ("ERROR", "the FLOPs were not counted", {"flops": None}),
        ("ERROR", "nothing identifies the data set", {"dataset": None}),
        ("ERROR", "nothing identifies the weights", {"weights_given": True}),
        ("ERROR", "the record has no target", {"target": None}),
        ("ERROR", "does not say how many processes there were", {"nnodes": None}),
        ("INSUFFICIENT", "only some tests", {"partial": True}),
        ("INSUFFICIENT", "Proofmark has not measured it", {"read_from": ("a.log",)}),
        ("AMBIGUOUS", "sooner than the reference runs", {"config": {"references": {"16": [900, 900, 900]}}}),
    ],
)
def test_refused_record(kind: str, expected: str, changes: dict[str, Any]) -> None:
    found = judged(**changes)
    assert found[0] == kind and expected in found[1], found


def test_a_core_above_the_peak_is_no_core() -> None:
    """How much of the time was compute is the ranks' word: MFU is of the whole."""
    chip = Chip(name="c", peak=Peak(flops_per_second=1e6, precision="fp32", source="sheet", achievable=9e5))
    for core, kind in ((800.0, "PASS"), (950.0, "ERROR"), (2e9, "ERROR")):
        run = make_run(rates=rates(100.0, 101.0, core))
        found, reasons = judged(run, chip=chip, utilisation=Utilisation(mfu=0.1))
        assert found == kind and ("core: MFU" in reasons) == (kind == "ERROR"), reasons


def rates(raw: float, no_eval: float, pure_compute: float) -> Rates:
    return Rates(raw=raw, no_eval=no_eval, pure_compute=pure_compute)


@pytest.mark.parametrize(
    "kind, expected, changes",
    [
        ("ERROR", "the last evaluation has no top1", {"converged": False, "metric": None}),
        ("ERROR", "the last evaluation has no top1", {"converged": None}),
        ("ERROR", "it is said to have converged, but top1 0.80000 is below", {"metric": 0.8}),
        ("ERROR", "nothing was measured", {"rates": None}),
        ("ERROR", "a throughput is missing", {"rates": Rates(raw=1, no_eval=None, pure_compute=3)}),
        ("ERROR", "a throughput is missing", {"rates": Rates(raw=1, no_eval=2, pure_compute=None)}),
        ("ERROR", "but no evaluation says when", {"evaluations": ()}),
        ("ERROR", "throughputs must fall in this order", {"rates": rates(3, 2, 4)}),
        ("ERROR", "throughputs must fall in this order", {"rates": rates(1, 3, 2)}),
        ("ERROR", "throughputs must fall in this order", {"rates": rates(0, 1, 2)}),
        ("ERROR", "0 of 1 ranks left their figures", {"ranks": (Rank(rank=0),)}),
        ("ERROR", "0 of 1 ranks left their figures", {"ranks": ()}),
        ("ERROR", "the log of rank 0 has no end", {"ranks": (Rank(rank=0, compute_seconds=1.0),)}),
        ("ERROR", "the log of rank 0 has no end", {"ranks": (Rank(rank=0, compute_seconds=1.0, steps=1),)}),
        ("ERROR", "rank 1 was killed", {"failure": DIED, **BROKE_OFF}),
        ("FAIL_ACCURACY", "is not finite", {"failure": DIVERGED, **BROKE_OFF}),
        ("FAIL_ACCURACY", "top1 0.80000 is below the target 0.9", {"converged": False, "metric": 0.8}),
        ("FAIL_ACCURACY", "top1 0.8999999 is below the target 0.9", {"converged": False, "metric": 0.8999999}),
        ("AMBIGUOUS", "throttled while it was timed: heat", {"monitoring": {"throttled": ("heat",)}}),
        (
            "AMBIGUOUS",
            "other processes were on a device while it was timed: 7",
            {"monitoring": {"foreign_processes": (7,)}},
        ),
    ],
)
def test_refused_run(kind: str, expected: str, changes: dict[str, Any]) -> None:
    if "monitoring" in changes:
        changes = {"monitoring": Monitoring.model_validate({"samples": 3, "window": None, **changes["monitoring"]})}
    found = judged(make_run(**changes))
    assert found[0] == kind and expected in found[1], found


def test_of_a_training_that_came_to_no_figures_none_is_asked_for() -> None:
    found = judged(make_run(**{"failure": DIVERGED, **BROKE_OFF}), flops=None)
    assert found == ("FAIL_ACCURACY", DIVERGED.cause)


@pytest.mark.parametrize(
    "kind, expected, changes",
    [
        ("ERROR", "its log does not say whether it converged", {"converged": None}),
        ("ERROR", "its log does not say how well the model does", {"metric": None}),
        ("FAIL_ACCURACY", "it did not converge", {"converged": False, "metric": None}),
        ("INSUFFICIENT", "read from a log: Proofmark has not measured it", {"ranks": (), "rates": None}),
    ],
)
def test_what_a_log_of_others_must_say(kind: str, expected: str, changes: dict[str, Any]) -> None:
    unknown = {"dataset": None, "flops": None, "nnodes": None, "nproc": None}
    assert judged(make_run(**changes), read_from=("a.log",), **unknown) == (kind, expected)


@pytest.mark.parametrize(
    "expected, run, changes",
    [
        ("nothing was measured", {"rates": None}, {}),
        ("a throughput is missing", {"rates": Rates(raw=1, no_eval=None, pure_compute=3)}, {}),
        ("it is said to have converged, but no evaluation says when", {"evaluations": ()}, {}),
        ("the record has no target", {}, {"target": None}),
        ("the record does not say how many processes there were", {}, {"nnodes": None}),
        ("the event log has no end: whoever wrote it was killed before", {}, {"ended": False}),
        ("3 lines of the event logs are damaged", {}, {"corrupt_lines": 3}),
        ("nothing identifies the data set", {}, {"dataset": None}),
        ("nothing identifies the weights", {}, {"weights_given": True}),
        (
            "throughputs must fall in this order: core 4, no eval 2, whole 3",
            {"rates": Rates(raw=3, no_eval=2, pure_compute=4)},
            {},
        ),
        (
            "throughputs must fall in this order: core 2, no eval 1, whole -1",
            {"rates": Rates(raw=-1, no_eval=1, pure_compute=2)},
            {},
        ),
    ],
)
def test_a_reason_is_told_in_these_words(expected: str, run: dict[str, Any], changes: dict[str, Any]) -> None:
    kind, found = judged(make_run(**run), **changes)
    assert kind == "ERROR" and found.splitlines()[0] == expected


def test_no_more_tokens_are_believed_than_fit() -> None:
    full = make_run(tokens_per_item=64.0)
    assert judged(full, config={"max_seq_length": 64}) == judged(full) == ("PASS", "")
    expected = "a point is said to have 64.5 tokens, and at most 64 fit"
    assert judged(make_run(tokens_per_item=64.5), config={"max_seq_length": 64}) == ("ERROR", expected)


def test_throughputs_may_be_equal() -> None:
    assert judged(make_run(rates=Rates(raw=2, no_eval=2, pure_compute=2)))[0] == "PASS"
    assert judged(make_run(rates=Rates(raw=0.1, no_eval=0.2, pure_compute=0.3)))[0] == "PASS", "of large items"


def test_of_several_runs_a_reason_names_the_seed() -> None:
    kind, reasons = judged(make_run(), make_run(seed=7, metric=None), repeats=3)
    assert kind == "ERROR" and reasons.splitlines() == [
        "2 of 3 runs are in the record",
        "seed 7: the last evaluation has no top1",
    ]
    assert judged(make_run(), make_run(seed=1), repeats=1) == ("ERROR", "2 of 1 runs are in the record")


def test_every_line_of_every_cause_is_a_reason() -> None:
    died = DIED.model_copy(update={"cause": "rank 1 was killed\nrank 2 was killed"})
    runs = [make_run(seed=seed, failure=died, **BROKE_OFF) for seed in (3, 4)]
    _, reasons = judged(*runs)
    assert reasons.splitlines() == [f"seed {seed}: rank {rank} was killed" for seed in (3, 4) for rank in (1, 2)]


def test_a_run_that_failed_has_not_converged_whatever_it_says() -> None:
    assert judged(make_run(failure=DIVERGED)) == ("FAIL_ACCURACY", DIVERGED.cause)


def test_of_many_broken_logs_sixteen_are_named() -> None:
    ranks = [Rank(rank=number, compute_seconds=1.0, steps=None if number else 8) for number in range(20)]
    named = ", ".join(map(str, range(1, 17)))
    expected = f"the log of rank {named} has no end, or another than rank 0's"
    assert judged(make_run(ranks=ranks), nproc=20) == ("ERROR", expected)


@pytest.mark.parametrize(
    "better, target, kind",
    [("higher", 0.95, "PASS"), ("higher", 0.9501, "ERROR"), ("lower", 0.95, "PASS"), ("lower", 0.9499, "ERROR")],
)
def test_a_target_is_reached_where_it_is_met(better: str, target: float, kind: str) -> None:
    worst = Evaluation(samples=0, seconds=0.0, metric=0.1 if better == "higher" else 2.0)
    run = make_run()
    run = run.model_copy(update={"evaluations": (worst, *run.evaluations[1:])})
    assert judged(run, better=better, target=target)[0] == kind


@pytest.mark.parametrize(
    "better, target, expected",
    [
        ("higher", 0.9, "top1 0.80000 is below the target 0.9 after 200"),
        ("lower", 0.7, "above the target 0.7"),
        ("lower", 0.7999999, "top1 0.8000000 is above the target 0.7999999"),
    ],
)
def test_a_shortfall_says_on_which_side(better: str, target: float, expected: str) -> None:
    run = missed()
    worst = Evaluation(samples=0, seconds=0.0, metric=2.0)
    run = run.model_copy(update={"evaluations": (worst, *run.evaluations[1:])})
    found = judged(run, better=better, target=target)
    assert found[0] == "FAIL_ACCURACY" and expected in found[1]


@pytest.mark.parametrize(
    "samples, metric, kind", [(0, 0.9, "AMBIGUOUS"), (0, 0.89, "PASS"), (0, None, "PASS"), (1, 0.95, "PASS")]
)
def test_only_a_model_at_its_target_before_the_first_step_is_not_timed(
    samples: int, metric: float | None, kind: str
) -> None:
    run = make_run()
    first = Evaluation(samples=samples, seconds=0.0, metric=metric)
    assert judged(run.model_copy(update={"evaluations": (first, *run.evaluations[1:])}))[0] == kind


@pytest.mark.parametrize(
    "reference, interval, kind",
    [(299, 100, "PASS"), (300, 100, "PASS"), (301, 100, "AMBIGUOUS"), (301, 101, "PASS"), (300, 0, "PASS")],
)
def test_no_sooner_than_an_interval_before_the_references(reference: int, interval: int, kind: str) -> None:
    """The run is there after 200 samples. Without an interval of evaluations it is the data set's 100."""
    config = {"references": {"16": [reference] * 3, "32": [300]}, "eval_interval_samples": interval}
    found = judged(config=config)
    assert found[0] == kind
    if kind == "AMBIGUOUS":
        allowed = f"({reference}, {reference}, {reference}) allow ({reference - interval})"
        assert found[1] == f"converged after 200 samples, sooner than the reference runs {allowed}"


def test_references_and_no_data_set_to_take_the_interval_from() -> None:
    assert judged(dataset=None, config={"references": {"16": [900]}}) == ("ERROR", "nothing identifies the data set")


@pytest.mark.parametrize(
    "references, floor",
    [
        ({"17": [317] * 3}, "at a global batch of 17 (317, 317, 317) allow (204)"),  # no fewer steps with a smaller one
        ({"17": [312] * 3}, None),
        ({"8": [301] * 3}, "at a global batch of 8 (301, 301, 301) allow (201)"),  # no fewer samples with a larger one
        ({"8": [300] * 3, "64": [900]}, None),
        ({"8": [300] * 3, "32": [502]}, "at a global batch of 32 (502) allow (201)"),
        ({"16": [300], "8": [400]}, "at a global batch of 8 (400) allow (300)"),
        ({"16": [], "small": [900], "0": [900]}, None),
    ],
)
def test_references_of_other_batches_bound_this_ones(references: dict[str, list[int]], floor: str | None) -> None:
    """The run is there after 200 samples, at a global batch of 16, evaluated each 100."""
    found = judged(config={"references": references})
    said = f"converged after 200 samples, sooner than the reference runs {floor}"
    assert found == (("PASS", "") if floor is None else ("AMBIGUOUS", said))


def test_references_leave_a_step_of_slack() -> None:
    """Nothing is evaluated within one."""
    config = {"references": {"16": [900]}, "eval_interval_samples": 1}
    found = held_to(make_training(config=config))
    assert found == (16, [900], 884.0)


@pytest.mark.parametrize("limit, early", [(None, True), (200, False), (199, False), (201, True)])
def test_who_misses_the_target_has_trained_for_as_long_as_it_might(limit: int | None, early: bool) -> None:
    config = {"max_epoch": 3, "max_samples_termination": limit}
    runs = [make_run(converged=False, metric=0.8), *[make_run(seed=seed) for seed in range(1, 5)]]
    found = judged(*runs, config=config)
    said = f"seed 0: it ended after 200 samples, short of the target; it had {limit or 300} to reach it"
    assert found == (("ERROR", said) if early else ("PASS", "")), found


@pytest.mark.parametrize("broken, kind", [(1, "PASS"), (2, "FAIL_ACCURACY")])
def test_one_seed_of_five_may_diverge(tmp_path: Path, broken: int, kind: str) -> None:
    """It is a miss: the tests say what the verdict does."""
    seeds = [make_run(failure=DIVERGED, converged=None, rates=None, metric=None) for _ in range(broken)]
    record = make_training(*seeds, *[make_run(seed=seed) for seed in range(broken, 5)])
    assert record.verdict is not None and record.verdict.kind == kind, record.verdict
    scale_run: Any = SimpleNamespace(run_dir=tmp_path)
    with nullcontext() if kind == "PASS" else pytest.raises(pytest.fail.Exception, match="loss of step 9"):
        TrainingContract.test_ranks_finish(None, record, scale_run)  # type: ignore[arg-type]


def test_rates_are_of_runs_that_reached_the_target() -> None:
    """Nobody has examined another, whose samples are its ranks' word."""
    quick = make_run(converged=False, rates=rates(1e6, 1e6, 1e6))
    broken = make_run(failure=Failure(ranks=(0,), cause="it diverged", diverged=True), rates=rates(1e6, 1e6, 1e6))
    short = make_run(examination=Examination(claimed=0.95, metric=0.85, weight=1e6, samples=50, of=50))
    assert measured(make_training(make_run(), quick, broken, short)) == [make_run()]
    assert measured(make_training(quick, broken)) == [quick]
    assert not measured(make_training(broken))


def test_energy_is_by_the_items_of_runs_that_reached_the_target() -> None:
    seen = Monitoring(samples=9, window=None, energy_joules=100.0, energy_per_item=0.5)
    claims = make_run(converged=False, monitoring=seen.model_copy(update={"energy_per_item": 1e-6}))
    record = make_training(claims, *[make_run(seed=seed, monitoring=seen) for seed in range(1, 5)])
    found = {figure.key: figure.value for figure in record.figures}
    assert (found["energy_per_item"], found["energy_joules"]) == (0.5, 500.0)


def test_a_rank_that_is_there_twice_is_not_two() -> None:
    twice = make_run().ranks * 2
    assert judged(make_run(ranks=twice), nproc=2) == ("ERROR", "1 of 2 ranks left their figures")


def test_a_model_at_its_target_before_training_is_not_timed() -> None:
    run = make_run()
    before = Evaluation(samples=0, seconds=0.0, metric=0.95)
    found = judged(run.model_copy(update={"evaluations": (before, *run.evaluations[1:])}))
    assert found == ("AMBIGUOUS", "the model was at the target before it was trained")


@pytest.mark.parametrize("better, metric, kind", [("lower", 0.5, "PASS"), ("lower", 1.5, "FAIL_ACCURACY")])
def test_losses_must_fall_below_their_target(better: str, metric: float, kind: str) -> None:
    run = make_run(metric=metric, converged=metric <= 1.0)
    run = run.model_copy(update={"evaluations": (Evaluation(samples=0, seconds=0.0, metric=2.0), *run.evaluations[1:])})
    assert judged(run, better=better, target=1.0)[0] == kind


@pytest.mark.parametrize(
    "runs, misses, kind",
    [(1, 1, "FAIL"), (4, 1, "FAIL"), (5, 1, "PASS"), (5, 2, "FAIL"), (9, 2, "FAIL"), (10, 2, "PASS"), (10, 3, "FAIL")],
)
def test_one_in_five_may_miss(runs: int, misses: int, kind: str) -> None:
    found = judged(*[missed() for _ in range(misses)], *[make_run() for _ in range(runs - misses)])
    assert found[0].startswith(kind), found


@pytest.mark.parametrize("samples", [100, 300])
def test_the_last_evaluation_is_the_end(samples: int) -> None:
    """Its samples are those to the target, which references are held against."""
    run = make_run()
    last = run.evaluations[-1].model_copy(update={"samples": samples})
    run = run.model_copy(update={"evaluations": (*run.evaluations[:-1], last)})
    expected = f"its last evaluation is after {samples} samples, and its end after 200"
    assert judged(run) == ("ERROR", expected)


def test_where_feeders_count_they_must_have_counted() -> None:
    expected = "nothing says how many samples its ranks took from the processes that load them"
    assert judged(make_run(), fed=True) == ("ERROR", expected)
    counted = HandedOut(claimed=200, samples=200, by_the_end=200, tokens=None)
    assert judged(make_run(handed_out=counted), fed=True)[0] == judged(make_run(handed_out=None))[0] == "PASS"


def test_a_miss_took_for_ever() -> None:
    assert olympic_mean([1.0, 2.0]) == 1.5
    assert olympic_mean([100.0, 110.0, 120.0, 130.0, float("inf")]) == 120.0
    assert olympic_mean([100.0, 110.0, float("inf"), 130.0, float("inf")]) == float("inf")


def test_references_that_agree_leave_one_evaluation_of_slack() -> None:
    assert soonest([900, 900, 900], 100.0) == 800.0
    assert soonest([900], 100.0) == 800.0
    assert soonest([800, 1000], 100.0) == pytest.approx(900 - 6.314 * 141.4 * 1.5**0.5, rel=1e-3)
    # Student's t for three runs, one-sided 95 %: 2.92
    assert soonest([800, 900, 1000], 100.0) == pytest.approx(900 - 2.92 * 100 * (4 / 3) ** 0.5, rel=1e-3)


def test_the_first_stage_with_a_complaint_decides() -> None:
    assert judged(missed(), interrupted="round 1")[0] == VerdictKind.ERROR


@pytest.mark.parametrize("name", sorted(required(adapted=True, converged=True)))
class TestHonesty:
    def test_a_check_that_failed(self, name: str) -> None:
        run = make_run(checks=[passed(name, passed=False, figure=None)])
        assert judged(run) == ("FAIL_HONESTY", f"not: {name}")

    def test_it_is_told_before_what_follows_from_it(self, name: str) -> None:
        run = make_run(checks=[passed(name, passed=False)], converged=False, metric=None, rates=None, ranks=())
        assert judged(run, utilisation=Utilisation(mfu=7.0))[0] == "FAIL_HONESTY"

    def test_one_run_of_two(self, name: str) -> None:
        other = make_run(seed=1, checks=[passed(name, passed=False)])
        assert judged(make_run(), other) == ("FAIL_HONESTY", f"seed 1: not: {name}")

    def test_a_check_that_is_missing_is_no_pass(self, name: str) -> None:
        all_of_them = [passed(each) for each in sorted(required(adapted=True, converged=True))]
        changes = {"adapted": ("convert_model",)}
        assert judged(make_run(checks=all_of_them), **changes)[0] == "PASS"
        run = make_run(checks=[check for check in all_of_them if check.name != name])
        assert judged(run, **changes) == ("ERROR", f"the honesty check '{name}' is missing")


def test_a_vendor_that_adapts_nothing_needs_no_second_evaluation() -> None:
    assert required(adapted=False, converged=True) == {PARAMETERS, WEIGHTS, CLOCK, OUTSIDE}
    assert required(adapted=True, converged=False) == {PARAMETERS, WEIGHTS, CLOCK, FUNCTION}


def test_an_audit_without_the_first_step_is_none() -> None:
    """But of a training that went on from a checkpoint, which has no first step."""
    checks = [*make_run().checks, passed(REPLAYED)]
    missing = f"the honesty check '{SEEDED}' is missing"
    assert judged(make_run(checks=checks), audited=True) == ("ERROR", missing)
    assert judged(make_run(checks=[*checks, passed(SEEDED)]), audited=True) == ("PASS", "")
    assert missing not in judged(make_run(checks=checks, resumed_from=4), audited=True)[1]


def test_a_training_that_missed_its_target_needs_no_confirmation() -> None:
    checks = [passed(name) for name in sorted(required(adapted=True, converged=False))]
    run = make_run(checks=checks, converged=False, metric=0.8)
    assert judged(run, adapted=("backward",))[0] == "FAIL_ACCURACY"


def found_outside(metric: float | None, **changes: Any) -> SeedRun:
    """A run that claims 0.95, and what the referee's own process found, of 50 samples or of some of them."""
    values = {"claimed": 0.95, "metric": metric, "weight": 50.0, "samples": 50, "of": 50, **changes}
    examination = Examination(**values)
    return make_run(examination=examination, metric=metric if examination.whole else 0.95)


@pytest.mark.parametrize(
    "run, kind, expected",
    [
        (found_outside(0.95), "PASS", ""),
        (found_outside(0.87), "PASS", ""),  # another processor rounds two samples otherwise
        (found_outside(0.85), "FAIL_ACCURACY", "top1 0.85000 is below the target"),
        (found_outside(0.85, samples=40, error=0.01), "PASS", ""),  # of some samples, which may be short by chance
        (found_outside(0.82, samples=40, error=0.01), "FAIL_ACCURACY", "on 40 samples drawn, top1 0.82000 is below"),
        (found_outside(0.899, weight=None), "PASS", ""),  # no mean: as much as the precision's share
        (found_outside(0.89, weight=None), "FAIL_ACCURACY", "top1 0.89000 is below the target"),
        (found_outside(None, reason="no space"), "ERROR", "not evaluated outside the ranks: no space"),
        (found_outside(0.95, claimed=0.5), "ERROR", "it is said to have converged, but top1 0.50000 is below"),
    ],
)
def test_what_the_weights_have_outside_the_ranks_is_judged(run: SeedRun, kind: str, expected: str) -> None:
    found, reasons = judged(run)
    assert (found, expected in reasons) == (kind, True), (found, reasons)


OTHERS: dict[str, Any] = {"others": {"perplexity": {"target": 8.0, "better": "lower"}, "shown": {}}}


def of_perplexity(found: dict[str, Any] | None) -> SeedRun:
    """One that has its headline, and another value as it was found outside."""
    others = {} if found is None else {"perplexity": {"claimed": 7.9, **found}}
    whole = {"claimed": 0.95, "metric": 0.95, "weight": 50.0, "samples": 50, "of": 50}
    return make_run(examination=Examination.model_validate({**whole, "others": others}))


@pytest.mark.parametrize(
    "run, precision, short",
    [
        (make_run(), "fp32", False),
        (make_run(converged=False), "fp32", True),
        (make_run(failure=DIED), "fp32", True),
        (found_outside(0.835, samples=40, error=0.01), "fp32", False),  # 0.04 of rounding, three standard errors
        (found_outside(0.825, samples=40, error=0.01), "fp32", True),
        (found_outside(0.899, weight=None), "int8", True),  # no mean, and of a precision of which nothing is known
        (found_outside(None), "fp32", False),
        (of_perplexity(None), "fp32", False),
        (of_perplexity({"metric": 8.01}), "fp32", False),  # no mean: a share of its own size
        (of_perplexity({"metric": 8.02}), "fp32", True),
        (of_perplexity({"metric": 9.5, "weight": 1.0}), "fp32", False),
        (of_perplexity({"metric": 9.5, "weight": 0.5}), "fp32", False),  # worth one thing at least
        (of_perplexity({"metric": 10.5, "weight": 1.0}), "fp32", True),
    ],
)
def test_by_how_much_weights_may_miss_their_target(run: SeedRun, precision: str, short: bool) -> None:
    assert is_short(make_training(run, precision=precision, **OTHERS), run) is short


def test_as_many_runs_as_the_policy_asks_for() -> None:
    asked = default_policy().model_copy(update={"least_seeds": 2})
    assert judged(make_run(), make_run(), policy=asked) == ("PASS", "")
    expected = "it was trained 1 times, the policy asks for 2: --repeat 2 or more"
    assert judged(make_run(), policy=asked) == ("INSUFFICIENT", expected)


def test_logs_of_others_have_no_checks() -> None:
    assert judged(make_run(checks=()), read_from=("a.log",))[0] == "INSUFFICIENT"


def test_figures_are_over_all_independent_servers() -> None:
    """Not the first's alone."""
    server = make_run(rates=rates(1.0, 1.5, 2.0), samples=100)
    record = make_training(make_run(rates=rates(2.0, 3.0, 4.0), samples=100, servers=(server,)))
    assert record.rates["raw"].value == pytest.approx(200 / (50 + 100))


def test_independent_servers_must_all_reach_the_target() -> None:
    def served(*accuracies: float) -> Instances:
        mean = sum(accuracies) / len(accuracies)
        rates = (10.0,) * len(accuracies)
        return Instances(
            mode="per_server_mean", throughputs=rates, accuracies=accuracies, throughput=10.0, accuracy=mean
        )

    assert judged(make_run(instances=served(0.95, 0.9), servers=[make_run()]))[0] == "PASS"
    kind, reasons = judged(make_run(instances=served(0.99, 0.99, 0.85), servers=[make_run(), make_run()]))
    assert kind == "FAIL_ACCURACY" and reasons == "instance 2: top1 0.85000 is below the target 0.9"
    kind, reasons = judged(make_run(instances=served(0.95, 0.95)))
    assert (kind, reasons) == ("ERROR", "of 2 servers 1 left their logs")


@pytest.mark.parametrize(
    "changes, kind, expected",
    [
        ({"checks": [passed(CLOCK, passed=False)]}, "FAIL_HONESTY", "not: keeps time"),
        (
            {"checks": [passed(CLOCK), passed(OUTSIDE)]},
            "ERROR",
            "the honesty check 'keeps the case's parameters' is missing",
        ),
        ({"converged": False, "metric": 0.8}, "FAIL_ACCURACY", "top1 0.80000 is below the target"),
        ({"ranks": ()}, "ERROR", "0 of 1 ranks left their figures"),
        ({"contention": Contention(others=0.3, stolen=0.0, idle=0.0)}, "AMBIGUOUS", "contention: others took 30.0%"),
        ({"failure": Failure(ranks=(1,), cause="rank 1 was killed by signal 9")}, "ERROR", "rank 1 was killed"),
    ],
)
def test_each_independent_server_is_judged_as_a_run(changes: dict[str, Any], kind: str, expected: str) -> None:
    served = Instances(
        mode="per_server_mean", throughputs=(10.0, 10.0), accuracies=(0.95, 0.95), throughput=10.0, accuracy=0.95
    )
    found, reasons = judged(make_run(instances=served, servers=[make_run(**changes)]))
    assert found == kind and reasons.startswith(f"server 1: {expected}"), reasons


def of_two(perplexity: float | None, found: float | None = None, **changes: Any) -> SeedRun:
    """A run that reached its headline, with another value of the metric as the ranks say it, and as it was found."""
    last = make_run().evaluations[-1].model_copy(update={"others": {"perplexity": perplexity, "shown": -3.0}})
    values = {"metrics": {"perplexity": perplexity, "shown": -3.0}, "evaluations": (last,), **changes}
    if found is not None:
        of = {"claimed": perplexity, "metric": found, "weight": 5.0}
        others = {"perplexity": of, "shown": {"claimed": -3.0, "metric": -3.0}}
        whole = {"claimed": 0.95, "metric": 0.95, "weight": 50.0, "samples": 50, "of": 50}
        values["examination"] = Examination.model_validate({**whole, "others": others})
        values["metrics"] = {"perplexity": found, "shown": -3.0}
    return make_run(**values)


@pytest.mark.parametrize(
    "run, kind, expected",
    [
        (of_two(7.9), "PASS", ""),
        (of_two(8.0), "PASS", ""),
        (of_two(8.1), "ERROR", "said to have converged, but perplexity 8.10000 is above the target 8 after 200"),
        (of_two(8.1, converged=False), "FAIL_ACCURACY", "perplexity 8.10000 is above the target 8 after 200 samples"),
        (of_two(None), "ERROR", "the last evaluation has no perplexity"),
        (of_two(7.9, metrics={}), "ERROR", "the last evaluation has no perplexity, shown"),
        (of_two(7.9, 8.3), "PASS", ""),  # two samples that are rounded otherwise
        (of_two(7.9, 8.5), "FAIL_ACCURACY", "perplexity 8.50000 is above the target 8 after 200 samples"),
    ],
)
def test_every_value_that_has_a_target_is_judged(run: SeedRun, kind: str, expected: str) -> None:
    found, why = judged(run, **OTHERS)
    assert found == kind and expected in why


def test_a_target_that_one_value_has_before_the_first_step_is_none_of_all() -> None:
    run = of_two(7.9)
    before = run.evaluations[-1].model_copy(update={"samples": 0})
    found, reasons = judged(run.model_copy(update={"evaluations": (before, *run.evaluations)}), **OTHERS)
    assert (found, reasons) == ("AMBIGUOUS", "the model was at the target before it was trained")
    begun = before.model_copy(update={"others": {"perplexity": 20.0, "shown": -3.0}})
    assert judged(run.model_copy(update={"evaluations": (begun, *run.evaluations)}), **OTHERS)[0] == "PASS"
