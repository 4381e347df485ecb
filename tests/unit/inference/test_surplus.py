"""A metric that is better than the framework's is held to what chance can add to it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from proofmark.inference.outcome.surplus import DEVIATIONS, FLIPS, surplus
from proofmark.inference.outcome.verdict import judge
from proofmark.record.parts import Identity, VerdictKind
from tests.unit.records import accuracy, record

ITEMS = 800


def judged(
    reference: float,
    engine: float,
    items: int = ITEMS,
    weights: tuple[float | None, float | None] = (None, None),
    **more: Any,
) -> tuple[VerdictKind, str]:
    """The verdict on such figures, of a mean over as much as `weights`, the framework's and the engine's."""
    scores = {"framework_fp32": reference, "framework": reference, "engine": engine, "target": 0.0} | more
    found = record(accuracy=accuracy(**scores))
    assert found.dataset is not None
    data = Identity(**{**found.dataset.model_dump(), "items": items})
    rounds = {
        name: measured.model_copy(
            update={
                "rounds": tuple(each.model_copy(update={"items": items, "weight": weight}) for each in measured.rounds)
            }
        )
        for name, measured, weight in zip(
            ("framework", "engine"), (found.framework, found.engine), weights, strict=True
        )
        if measured is not None
    }
    verdict = judge(found.model_copy(update={"dataset": data, **rounds}))
    return verdict.kind, "\n".join(verdict.reasons)


def allowed(reference: float, items: int = ITEMS) -> float:
    return 0.01 * reference + DEVIATIONS * math.sqrt(FLIPS / items)


@pytest.mark.parametrize("items", [100, ITEMS, 50_000])
def test_it_is_bounded_by_how_many_samples_there_are(items: int) -> None:
    assert judged(0.7, 0.7 + allowed(0.7, items) - 1e-6, items) == (VerdictKind.PASS, "")
    kind, reasons = judged(0.7, 0.7 + allowed(0.7, items) + 1e-6, items)
    assert kind is VerdictKind.FAIL_HONESTY
    assert f"the fp32 framework's 0.70000 by more than rounding makes of a mean over {items:,} (" in reasons


def test_it_is_bounded_by_how_much_the_metric_is_a_mean_over() -> None:
    """As recall, of the positives alone: two more of a hundred may be found by chance."""
    assert judged(0.80, 0.82, 50_000, (100, 100)) == (VerdictKind.PASS, "")
    assert judged(0.80, 0.82, 50_000, (40_000, 40_000))[0] is VerdictKind.FAIL_HONESTY
    assert judged(0.80, 0.82, 50_000)[0] is VerdictKind.FAIL_HONESTY, "an older record"
    assert judged(0.7, 0.7 + allowed(0.7) + 1e-6, weights=(8 * ITEMS, 8 * ITEMS))[0] is VerdictKind.FAIL_HONESTY


def test_an_engine_is_allowed_no_more_by_answering_less() -> None:
    """As precision, of what is answered: one that is sure of three things alone has them all right."""
    assert judged(0.6, 1.0, weights=(400, 3))[0] is VerdictKind.FAIL_HONESTY
    assert judged(0.6, 0.62, weights=(400, 410))[0] is VerdictKind.PASS


def test_of_what_is_no_mean_nothing_is_known() -> None:
    assert judged(0.4, 0.9, weights=(0, 0))[0] is VerdictKind.PASS


def test_the_bound_is_as_the_pages_have_it() -> None:
    """0.047 of 355 samples, beyond the hundredth that may be lost too."""
    assert judged(0.7, 0.7 + 0.007 + 0.0474, 355)[0] is VerdictKind.PASS
    assert judged(0.7, 0.7 + 0.007 + 0.0476, 355)[0] is VerdictKind.FAIL_HONESTY


def test_at_the_bound_it_may_be_chance() -> None:
    assert judged(0.0, allowed(0.0))[0] is VerdictKind.PASS
    assert judged(0.2, 0.95, items=1)[0] is VerdictKind.PASS


def test_who_is_too_good_is_named() -> None:
    assert judged(0.5, 1.0)[1].startswith("engine top1 1.00000 is better")
    found = record(compiler=None, accuracy=accuracy(framework_fp32=0.5, framework=1.0, engine=None, target=0.4))
    (reason,) = surplus(found)
    assert reason.startswith("framework top1 1.00000 is better")


def test_of_data_of_unknown_size_nothing_is_said() -> None:
    assert surplus(record(dataset=None, accuracy=accuracy(framework_fp32=0.1, engine=1.0))) == []


def test_labels_by_heart_are_seen() -> None:
    assert judged(0.83, 1.0)[0] is VerdictKind.FAIL_HONESTY


def test_where_less_is_better_it_is_bounded_from_below() -> None:
    lower: dict[str, Any] = {"target": 1.0, "better": "lower"}
    assert judged(0.3, 0.3 - allowed(0.3) + 1e-6, **lower)[0] is VerdictKind.PASS
    assert judged(0.3, 0.3 - allowed(0.3) - 1e-6, **lower)[0] is VerdictKind.FAIL_HONESTY


@pytest.mark.parametrize("reference, engine, more", [(1.0, 0.0, {"target": 1.0, "better": "lower"}), (0.0, 1.0, {})])
def test_the_ends_of_the_scale_are_on_it(reference: float, engine: float, more: dict[str, Any]) -> None:
    assert judged(reference, engine, **more)[0] is VerdictKind.FAIL_HONESTY


def test_of_another_scale_nothing_is_known() -> None:
    assert judged(20.0, 10.0, target=30.0, better="lower")[0] is VerdictKind.PASS
    assert judged(-5.0, -1.0, target=-6.0)[0] is VerdictKind.PASS
    assert judged(0.5, 2.0)[0] is VerdictKind.PASS
    assert judged(1.5, 0.5, target=2.0, better="lower")[0] is VerdictKind.PASS
