"""What may be shown of a record."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from proofmark.inference.outcome.figures import figures
from proofmark.inference.outcome.record import Accuracy, RunRecord
from proofmark.record.parts import Check, Memory, Verdict, VerdictKind
from proofmark.record.provenance import Chip
from reports.content import text
from reports.content.view import Shown, check_bound, check_figure
from suites.inference.report.view import CaseView
from tests.reports.records import readings, watched, watched_record

SPEEDS = ("whole", "core", "loader", "bound_by", "mfu", "engine_latency_p50_ms", "flops_rate", "e2e_seconds")
COSTS = ("energy_joules", "energy_per_item", "energy_method")


def figure(record: RunRecord, key: str) -> str:
    """A figure as a reader sees it, of a record as its suite makes figures of it now."""
    return str(CaseView(record.with_figures(figures(record))).shown(key))


@pytest.mark.parametrize("kind", VerdictKind)
def test_a_speed_is_shown_exactly_when_the_result_is_valid(kind):
    view = CaseView(watched_record(verdict=Verdict(kind=kind, reasons=("because",))))
    shown = [view.shown(key) for key in SPEEDS + COSTS]
    if not kind.shows_speed:
        assert {figure.text for figure in shown} == {f"withheld: {kind}"}
        assert all(figure.value is None for figure in shown)
        assert view.rounds("engine", "core") == view.spans("engine") == []
        assert view.window is None
    else:
        assert not any("withheld" in figure.text for figure in shown)
        assert len(view.rounds("engine", "core")) == len(view.spans("engine")) == 3
        assert view.window == pytest.approx((34.0, 60.9))
    assert view.shown("accuracy").value == 0.9816


def test_performance_and_doubt_do_not_withhold():
    assert {kind for kind in VerdictKind if kind.shows_speed} == {"PASS", "FAIL_PERF", "AMBIGUOUS", "INSUFFICIENT"}


def test_a_record_that_nobody_judged_shows_no_speed(records):
    view = CaseView(records["pass"].model_copy(update={"verdict": None}))
    assert view.verdict.kind == "ERROR" and view.verdict.reasons == ("the record has no verdict",)
    assert str(view.shown("core")) == "withheld: ERROR"


def test_a_missing_figure_says_why_and_is_never_zero(records):
    assert figure(records["framework_only"], "engine_core") == "– (no compiler: framework only)"
    assert figure(records["framework_only"], "core") == figure(records["framework_only"], "framework_core")
    assert figure(records["one_round"], "mfu") == "– (no peak for this chip at fp16)"
    assert figure(records["error"], "mfu") == "– (no reason recorded)"
    assert "engine_inference not reached" in figure(records["error"], "loader")
    assert figure(records["pass"], "speed_of_light") == "– (not among the record's figures)"


def test_a_record_cannot_hold_what_is_not_a_number():
    with pytest.raises(ValidationError):
        Accuracy(metric="top1", target=0.97, gate=0.999, framework_fp32=math.nan, engine=0.98)


@pytest.mark.parametrize(
    "value, expected", [(25.0, "25"), (1.0, "1.00000"), (0.0, "0.00000"), (25.5, "25.50000"), (float("inf"), "inf"),
                        (3.2e-6, "3.2000e-06"), (-3.2e-6, "-3.2000e-06"), (-0.5, "-0.50000"), (1e30, "1.0000e+30")]
)  # fmt: skip
def test_a_count_is_written_as_one_and_nothing_as_more_or_less_than_can_be_read(value: float, expected: str) -> None:
    assert text.score(value) == expected


def test_at_fp32_the_framework_has_one_score(make_record):
    same = Accuracy(metric="top1", target=0.97, gate=0.999, framework_fp32=0.98, framework=0.98, engine=0.98)
    view = CaseView(make_record(precision="fp32", accuracy=same))
    assert list(view.scores) == ["fp32 framework", "engine at fp32"]
    assert "accuracy_framework" not in [figure.key for figure, _ in view.listed()]
    assert view.shown("accuracy_framework").value == 0.98


def test_one_round_has_no_deviation(records):
    assert figure(records["one_round"], "engine_core") == "415.9 images/s (one round)"


def test_the_public_record_of_a_failed_run_gives_no_speed_away(records):
    record = records["fail_accuracy"]
    public = CaseView(record).public()
    for measured in (public["framework"], public["engine"]):
        shown = {key for key, value in measured.items() if value not in (None, "withheld: FAIL_ACCURACY")}
        assert shown == {"rounds", "warmup_batches"}
        for timed in measured["rounds"]:
            shown = {key for key, value in timed.items() if value not in (None, "withheld: FAIL_ACCURACY")}
            assert shown == {"accuracy"}, (
                "rounds are sized by seconds: how many items they had tells how fast they were"
            )
    assert public["seconds"] == public["utilisation"]["mfu"] == "withheld: FAIL_ACCURACY"
    steps = {step["name"]: step["seconds"] for step in public["steps"]}
    assert steps["compile"] == 4.5 and steps["engine_inference"] == "withheld: FAIL_ACCURACY"
    by_key = {figure["key"]: figure for figure in public["figures"]}
    assert by_key["core"]["value"] == by_key["core"]["spread"] == "withheld: FAIL_ACCURACY"
    assert by_key["accuracy"]["value"] == 0.9612


def test_the_public_record_keeps_no_reading_that_gives_a_speed_away(records):
    seen = CaseView(records["cheated"]).public()["monitoring"]
    open_keys = {"energy_method", "throttled", "foreign_processes", "failures", "isolation"}
    assert {seen[key] for key in seen.keys() - open_keys} == {"withheld: FAIL_HONESTY"}
    assert CaseView(watched_record()).public()["monitoring"]["series"]


@pytest.mark.parametrize(
    ("series", "reason"),
    [
        ((), "nothing read power or energy"),
        (
            readings(1),
            "fewer than two readings of power in a timed round, or none around it: "
            "a smaller --monitor-interval or larger --min-seconds has more",
        ),
    ],
)
def test_absent_energy_says_why(make_record, series, reason):
    seen = watched(series=series, energy_joules=None, energy_per_item=None, energy_method=None)
    record = make_record(monitoring=seen)
    assert {figure(record, key) for key in COSTS} == {f"– ({reason})"}


def test_the_public_record_of_a_valid_run_is_the_record(records):
    assert CaseView(records["pass"]).public() == records["pass"].model_dump(mode="json")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (12698.7, "12,699"),
        (1391.4, "1,391"),
        (418.1, "418.1"),
        (9.9999, "10.00"),
        (0.0234, "0.02340"),
        (0, "0"),
        (math.nan, "nan"),
    ],
)
def test_four_significant_digits(value, shown):
    assert text.number(value) == shown


@pytest.mark.parametrize(
    "figure, bound, shown",
    [(1.2504, 1.25, ("1.2504", "1.2500")), (1.3, 1.25, ("1.30", "1.25")), (1.25, 1.25, ("1.25", "1.25")),
     (0.5, None, ("0.500", text.MISSING)), (None, 1.1, (text.MISSING, "1.10"))],
)  # fmt: skip
def test_a_checks_figure_is_told_apart_from_its_bound(figure, bound, shown):
    check = Check(name="n", passed=False, figure=figure, bound=bound, meaning="it cheats")
    assert (check_figure(check).text, check_bound(check)) == shown
    if figure == 1.2504:
        assert check.finding == "it cheats (1.2504, bound 1.25)"


@pytest.mark.parametrize("value, plain", [(12345678, "12345678"), (0.30191919, "0.301919"), (1.5e9, "1.5e+09")])
def test_a_bare_value_keeps_all_of_an_integer(value, plain):
    assert Shown("as people read it", value).plain == plain


def test_units():
    assert text.scaled(8.18e9, "FLOP") == "8.180 GFLOP"
    assert text.scaled(2, "FLOP") == "2.000 FLOP"
    assert text.percent(0.168) == "16.8 %"
    assert [text.brief(value) for value in (1.0035, 0.000529, 5.587e-07, 0, 123.4)] == [
        "1.00",
        "0.000529",
        "5.59e-07",
        "0",
        "123",
    ]
    assert text.plural("image") == text.plural("images") == "images" and text.plural("套") == "套"
    assert text.literal(None) == "null" and text.literal("null") == '"null"'
    assert text.printable("a\x1b[31mb\n c\td") == "a\\x1b[31mb  c d"


@pytest.mark.parametrize(
    "raw, shown",
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("nul\x00", r"nul\x00"),
        ("turned \u202eround", r"turned \u202eround"),
        ("lone \udc80", r"lone \udc80"),
        ("no\u00a0break\r", "no break "),
        ("line\n\tline é 芯片", "line\n\tline é 芯片"),
    ],
)
def test_what_cannot_be_seen_is_escaped(raw, shown):
    assert text.visible(raw) == shown


def test_every_text_of_a_viewed_record_can_be_seen(make_record):
    raw, shown = "\x1b[31m\x00", r"\x1b[31m\x00"
    record = CaseView(make_record(vendor=raw, chip=Chip(name=raw), config={raw: [raw]}, dishonest=(raw,))).record
    assert (record.vendor, record.chip.name, record.config, record.dishonest) == (
        shown,
        shown,
        {shown: [shown]},
        (shown,),
    )
    assert record.verdict is not None and record.verdict.reasons == (shown,)


def test_a_run_that_ended_early_says_so_of_every_figure(records):
    keys = ("loader", "memory_host_bytes", "memory_device_bytes", "energy_joules", "accuracy")
    for name, why in (
        ("error", "engine_inference not reached: export was interrupted"),
        ("unsupported", "engine_inference not reached: compile is unsupported"),
    ):
        record = records[name].model_copy(update={"memory": Memory(), "monitoring": watched(energy_joules=None)})
        assert [figure(record, key) for key in keys] == [f"– ({why})"] * 5
    nobody = records["pass"].model_copy(update={"memory": Memory()})
    assert figure(nobody, "memory_host_bytes") == "– (nothing read the host's memory)"


def test_a_framework_that_only_runs_fp32_says_so(records):
    accuracy = records["pass"].accuracy.model_copy(update={"framework": None})
    shown = figure(records["pass"].model_copy(update={"accuracy": accuracy}), "accuracy_framework")
    assert shown == "– (vendor cpu runs the framework at fp32, not at fp16)"


@pytest.mark.parametrize(
    "fp32, floor, why", [(0.9825, "0.98152", "99.9 % of the fp32 framework's"), (0.97, "0.97000", "the target")]
)
def test_the_larger_of_target_and_share_binds(make_record, fp32, floor, why):
    accuracy = Accuracy(metric="top1", target=0.97, gate=0.999, framework_fp32=fp32, framework=fp32, engine=0.99)
    assert figure(make_record(accuracy=accuracy), "engine_floor") == f"top1 {floor} ({why})"


@pytest.mark.parametrize("moment", [1e300, -1e300, 2.6e11, float("1e15")])
def test_a_moment_of_no_year_is_told_as_seconds(moment: float) -> None:
    assert text.instant(moment) == f"{moment:g} s since 1970"
