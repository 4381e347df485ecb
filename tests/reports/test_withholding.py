"""That no output gives away a speed that is withheld: every output there is, of every kind of failure."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from fixtures.outputs.benchmark import hand_over
from proofmark.inference.outcome.figures import figures
from proofmark.inference.outcome.record import RunRecord
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Part, Utilisation, VerdictKind
from proofmark.training.outcome.record import Communication, Confirmation, Rank, Rates, Split, TrainingRecord
from reports.content import text
from reports.content.view import View
from reports.content.withholding import public, withheld, without_speeds
from reports.junit import properties
from reports.terminal import summary_lines
from reports.verdict_table import verdict_table
from suites.training.report.mllog import mllog
from suites.training.report.perflog import perflog
from tests.reports.records import make_record, watched, watched_record
from tests.suites_there import SUITES, page_of
from tests.training_records import BEGUN, make_run, make_training

WITHHOLDS_SPEED = sorted(kind for kind in VerdictKind if not kind.shows_speed)

ODD = itertools.count(1)


def odd() -> float:
    """A figure with digits that no other has, whatever the number of them that is shown."""
    return 7000.0 + 13.57 * next(ODD)


def failed_training(kind: VerdictKind) -> TrainingRecord:
    """A run in which every time and every speed is a figure of its own."""
    ranks = [
        Rank(
            rank=number,
            steps=8,
            compute_seconds=odd(),
            data_seconds=odd(),
            communication=Communication(share=0.137, steps=7),
        )
        for number in range(2)
    ]
    run = make_run()
    evaluations = [e.model_copy(update={"seconds": odd(), "metric": 0.5}) for e in run.evaluations]
    times = ("e2e_seconds", "init_seconds", "train_seconds", "no_eval_seconds", "pure_compute_seconds")
    run = make_run(
        ranks=ranks,
        metric=0.5,
        converged=False,
        evaluations=evaluations,
        rates=Rates(raw=odd(), no_eval=odd(), pure_compute=odd()),
        split=Split(
            init=odd(), data=odd(), compute=odd(), evaluation=odd(), checkpoint=odd(), other=odd(), confirmation=odd()
        ),
        confirmation=Confirmation(samples=64, metric=0.5, seconds=odd()),
        train_began=BEGUN + odd(),
        train_ended=BEGUN + odd(),
        monitoring=watched(
            energy_joules=odd(), energy_per_item=odd(), window=(BEGUN + odd(), BEGUN + odd()), series=()
        ),
        **{name: odd() for name in times},
    )
    record = make_training(
        run,
        scale="1x2",
        nproc=2,
        seconds=odd(),
        seconds_to_target=odd(),
        items_per_second_per_device=odd(),
        tokens_per_second=odd(),
        utilisation=Utilisation(mfu=0.7373),
    )
    assert record.verdict is not None
    return record.model_copy(update={"verdict": record.verdict.model_copy(update={"kind": kind})})


def failed_inference(kind: VerdictKind) -> RunRecord:
    """A run whose monitor's readings, many digits that hold any figure by chance, are left out."""
    record = watched_record(monitoring=watched(series=()), seconds=odd())
    assert record.verdict is not None
    return record.model_copy(update={"verdict": record.verdict.model_copy(update={"kind": kind})})


def secrets(part: Part) -> Iterator[float]:
    """Every figure of a record that is a speed or tells of one."""
    for name in type(part).model_fields:
        value = getattr(part, name)
        if name in part.speeds():
            yield from _figures(value)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Part):
                yield from secrets(each)


def _figures(value: Any) -> Iterator[float]:
    if isinstance(value, BaseModel):
        value = value.model_dump()
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else (value,):
        if isinstance(each, float):
            yield each
        elif isinstance(each, dict | tuple | list | BaseModel):
            yield from _figures(each)


def forms(figure: float) -> set[str]:
    """How one output or another would show it. Times since the epoch are long, a small count is no figure's sign."""
    shown = {text.number(figure), text.number(figure, 3), text.number(figure, 2), f"{figure:.6g}", f"{figure:.4g}"}
    shown |= {f"{figure:.1f}", text.percent(figure), f"{figure:.1%}", f"{figure}"}
    shown |= {f"{round(figure * 1000)}"} if figure > BEGUN else set()
    return {form for form in shown if sum(map(str.isdigit, form)) >= 4}


def outputs(record: CaseRecord, tmp_path: Path) -> dict[str, str]:
    """Everything that is written or shown of a record, but for the record itself."""
    texts = {
        "terminal": "\n".join(summary_lines([record])),
        "verdicts": verdict_table([record], tmp_path, 200, coloured=False),
        "html": page_of([record]),
        "charts": str([SUITES[record.suite].charts(record), SUITES[record.suite].section(record)]),
        "allure": described(record),
        "attached": str(View(record).public()),
        "junit": str(properties(record)),
    }
    if isinstance(record, TrainingRecord):
        texts |= {f"perflog {n}": perflog(record, run) for n, run in enumerate(record.runs)}
        texts |= {f"mllog {n}": mllog(record, run) for n, run in enumerate(record.runs)}
    return texts


def described(record: CaseRecord) -> str:
    """What Allure is told in words."""
    return str([f"{figure.name}: {shown}" for figure, shown in View(record).listed()])


@pytest.mark.parametrize("make", [failed_training, failed_inference])
@pytest.mark.parametrize("kind", WITHHOLDS_SPEED)
def test_no_output_gives_a_withheld_speed_away(make: Any, kind: VerdictKind, tmp_path: Path) -> None:
    record = make(kind)
    figures = {form for figure in secrets(record) for form in forms(figure)}
    assert len(figures) > 50
    for output, content in outputs(record, tmp_path).items():
        found = {
            form for form in figures if form in content and re.search(rf"(?<![\d.,]){re.escape(form)}(?!\d)", content)
        }
        if "started" in content or "log" in output:
            found -= forms(record.started)
        assert not found, output


@pytest.mark.parametrize("kind", [VerdictKind.PASS, *WITHHOLDS_SPEED])
def test_how_much_rounds_computed_in_their_seconds_is_as_telling_as_a_speed(kind: VerdictKind, tmp_path: Path) -> None:
    made = make_record()
    assert made.engine is not None and made.verdict is not None
    timed = made.engine.rounds[0].model_copy(update={"items": 712_345, "batches": 23_456})
    engine = made.engine.model_copy(update={"rounds": (timed,), "latency_batches": 34_567, "latency_ms": {}})
    made = made.model_copy(update={"engine": engine, "verdict": made.verdict.model_copy(update={"kind": kind})})
    shown = str(outputs(made.with_figures(figures(made)), tmp_path))
    counts = {count for count in ("712345", "23456", "34567") if count in shown.replace(",", "")}
    assert bool(counts) is kind.shows_speed


def test_readings_over_time_are_withheld_from_trainings_too() -> None:
    """They rise and fall with what is computed."""
    seen = watched()
    run = make_run(metric=0.5, converged=False, monitoring=seen)
    record = make_training(run)
    assert not record.verdict.kind.shows_speed and seen.series  # type: ignore[union-attr]
    drawn = str([SUITES["training"].charts(record), page_of([record])])
    assert "device utilisation" not in drawn and "No reading of" not in drawn
    assert "No readings over time are shown." in drawn


@pytest.mark.parametrize("make", [failed_training, failed_inference])
def test_the_same_figures_are_found_where_they_may_be_shown(make: Any, tmp_path: Path) -> None:
    """The test above would see them."""
    record = make(VerdictKind.PASS)
    figures = {form for figure in secrets(record) for form in forms(figure)}
    for output, content in outputs(record, tmp_path).items():
        if output != "mllog 0":  # it has moments alone, and those of its lines
            assert any(form in content for form in figures), output


TELLING = re.compile(
    r"second|rate|latency|began|ended|started|(?<!run)time|window|energy|mfu|whole|core|loader|bound|speed"
)
NO_SPEEDS = {
    ("Taken", "began"),
    ("RunRecord", "started"),
    ("TrainingRecord", "started"),
    ("SeedRun", "started"),  # of a run only its beginning is known
    ("Validated", "started"),
    ("Measurement", "foo_time_reason"),  # the vendor's words, from before anything was timed
    ("Monitoring", "energy_method"),
    ("RunRecord", "disturbed"),  # says what made it an ERROR
    ("Check", "bound"),
    ("SeedRun", "evaluations"),
    ("TrainingRecord", "ended"),
    ("Host", "cores"),
    ("Peak", "flops_per_second"),
    ("Compared", "budget_seconds"),
    ("Policy", "latency_percentile"),
    ("Noise", "contended"),
}
"""Fields that sound like a speed and tell of none, or none of the chip's."""


def parts(root: type[Part]) -> set[type[Part]]:
    """The types of all parts of a record that are not wholly withheld."""
    found, queue = set[type[Part]](), [root]
    while queue:
        part = queue.pop()
        found.add(part)
        for name, field in part.model_fields.items():
            if name not in part.SPEEDS:
                queue += [kind for kind in _types(field.annotation) if kind not in found]
    return found


def _types(annotation: Any) -> list[type[Part]]:
    inner = getattr(annotation, "__args__", ())
    if not inner:
        return [annotation] if isinstance(annotation, type) and issubclass(annotation, Part) else []
    return [kind for each in inner for kind in _types(each)]


@pytest.mark.parametrize("root", [RunRecord, TrainingRecord])
def test_every_field_that_sounds_like_a_speed_is_known_as_one_or_not(root: type[Part]) -> None:
    """A new field of a record is put into SPEEDS or into the list above, and not forgotten."""
    unknown = {
        (part.__name__, name)
        for part in parts(root)
        for name in part.model_fields
        if TELLING.search(name) and name not in part.SPEEDS and (part.__name__, name) not in NO_SPEEDS
    }
    assert unknown == set()


@pytest.mark.parametrize("root", [RunRecord, TrainingRecord])
def test_what_is_withheld_is_there(root: type[Part]) -> None:
    assert all(set(part.model_fields) >= part.SPEEDS for part in parts(root))


def test_a_run_without_speeds_is_a_run() -> None:
    record = failed_training(VerdictKind.FAIL_ACCURACY)
    stripped = without_speeds(record)
    assert TrainingRecord.model_validate(stripped.model_dump()) == stripped
    kept = stripped.runs[0]
    assert (kept.metric, kept.steps, kept.samples, kept.losses) == (0.5, 8, 200, record.runs[0].losses)
    assert [(e.samples, e.metric) for e in kept.evaluations] == [(0, 0.5), (100, 0.5), (200, 0.5)]
    assert not list(filter(None, secrets(stripped))) and without_speeds(stripped) == stripped


@pytest.mark.parametrize("make", [failed_training, failed_inference])
@pytest.mark.parametrize("kind", WITHHOLDS_SPEED)
def test_pytest_benchmark_is_told_nothing(make: Any, kind: VerdictKind) -> None:
    benchmark = SimpleNamespace(extra_info={}, pedantic=None)
    node = SimpleNamespace(nodeid="test_x", stash={})
    with pytest.raises(ValueError, match=f"is withheld: {kind}"):
        hand_over(benchmark, node, make(kind), "core", [1], [2.0])
    assert benchmark.extra_info == node.stash == {}


def test_without_a_verdict_there_is_no_speed() -> None:
    record = make_record()
    assert withheld(None) == "withheld: not judged"
    assert public(record, None)["seconds"] == "withheld: not judged"
    assert public(record, record.verdict) == json.loads(record.model_dump_json())


def test_a_page_says_that_times_are_withheld() -> None:
    record = failed_training(VerdictKind.FAIL_ACCURACY)
    by_label = {figure.label: str(shown) for figure, shown in View(record).listed()}
    assert by_label["seed 0"] == "not converged, top1 0.50000, 200 points"
    withheld = ("seed 0, times", "communication", "energy: training", "energy: per item", "in all")
    assert {by_label[name] for name in withheld} == {"withheld: FAIL_ACCURACY"}
    assert "where the time went" not in SUITES["training"].charts(record)
