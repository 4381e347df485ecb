"""What a case says of its metric's values: names, directions, targets, and what an engine must keep of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from proofmark.rules.aims import (
    Aim,
    Better,
    JudgedBy,
    aims_of,
    factor_kept,
    judged,
    reaches,
    shown_only,
    slug,
    with_headline,
    worst,
    wrong_side,
)
from proofmark.rules.case_file import Parameters
from proofmark.rules.config import EffectiveConfig

TASK = {"seed": 0, "flops": 1, "item": "image"}

numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
ways = st.sampled_from(["higher", "lower"])


def parameters(**values: Any) -> dict[str, Any]:
    return Parameters.model_validate({**TASK, **values}).model_dump()


def test_one_value_is_described_as_it_always_was() -> None:
    short = parameters(metric="top1", target=0.9)
    assert not {"metrics", "better"} & short.keys(), "or the hash of every task would be another"
    assert aims_of(short) == {"top1": Aim(target=0.9)}
    assert aims_of(parameters(metric="mse", target=-1, better="lower")) == {"mse": Aim(target=-1.0, better="lower")}


def test_the_first_with_a_target_is_the_headline() -> None:
    several = parameters(metrics={"map_50": {}, "map": {"target": 0.4}, "error": {"target": 2, "better": "lower"}})
    assert (several["metric"], several["target"], several["better"]) == ("map", 0.4, "higher")
    assert list(aims_of(several)) == ["map", "map_50", "error"] and judged(aims_of(several)) == ["map", "error"]
    frozen = EffectiveConfig("inference", "net", "embedded", "acme", several, {})
    assert aims_of(frozen.parameters) == aims_of(several)
    assert parameters(better="lower", metrics={"mse": {"target": 1.5}})["metrics"]["mse"]["better"] == "lower"


def test_without_a_name_a_value_is_the_metric() -> None:
    assert aims_of({"target": 0.5}) == {"metric": Aim(target=0.5)}
    assert with_headline({"metrics": {}})["metric"] == "metric"


@pytest.mark.parametrize(
    "given, made",
    [
        ({"metrics": {"map": {"target": 0.4}}}, ("map", 0.4, "higher")),
        ({"metrics": {"map": {"target": 0.4, "better": "higher"}}, "better": "lower"}, ("map", 0.4, "higher")),
        ({"metrics": {"mse": {"target": 2, "better": "lower"}}}, ("mse", 2, "lower")),
        ({"metrics": {"mse": {"target": 2}}, "better": "lower"}, ("mse", 2, "lower")),
        ({"metrics": {"map": {"target": 1, "better": "up"}}}, ("map", 1, "higher")),
        ({"metrics": {"map": {"target": "high"}}}, ("metric", 0.0, "higher")),
        ({"metrics": {}, "better": "lower"}, ("metric", 0.0, "lower")),
        ({"metrics": ["map"]}, ("metric", 0.0, "higher")),
    ],
)
def test_several_values_make_a_headline(given: dict[str, Any], made: tuple[str, float, str]) -> None:
    full = with_headline(given)
    assert (full["metric"], full["target"], full["better"]) == made


def test_a_whole_number_is_a_target_and_a_truth_is_none() -> None:
    described = {**TASK, "metric": "top1"}
    assert (
        type(Aim(target=1).target) is float
        and type(JudgedBy.model_validate({"metric": "top1", "target": 1}).target) is float
    )
    for target in (True, "0.9"):
        with pytest.raises(ValidationError):
            Aim(target=target)  # type: ignore[arg-type]
    with pytest.raises(ValidationError):
        Parameters.model_validate({**described, "metric": "", "target": 1})
    assert Parameters.model_validate({**described, "metric": "m", "target": 1}).metric == "m"
    with pytest.raises(ValidationError):
        setattr(Aim(target=1), "target", 2)  # noqa: B010 (a frozen one's type forbids it too)


def test_the_schema_explains_each_entry() -> None:
    schema = JudgedBy.model_json_schema()["properties"]
    assert [schema[name].get("description") for name in ("metric", "better", "metrics")] == [
        "the value that is judged first: of `metrics` the first with a target",
        "null: higher",
        "in the place of metric and target: the values that are judged or shown",
    ]
    target = Aim.model_json_schema()["properties"]["target"]
    assert target["description"] == "in the value's unit, of either sign; null: it is only shown"


def test_a_value_that_misses_lies_on_the_worse_side() -> None:
    assert (wrong_side("higher"), wrong_side("lower")) == ("below", "above")


def test_of_a_reference_of_nothing_nothing_may_be_lost() -> None:
    assert factor_kept(0.0, 0.5, "higher") == 0.5 and factor_kept(0.0, 0.5, "lower") == 1.5


def test_values_of_another_log_are_shown_as_far_as_they_can_be_told_apart() -> None:
    named: dict[str, Better] = {"map": "higher", "MAP": "lower", "no name!": "higher", "mse": "lower"}
    assert shown_only(named) == {"map": Aim(target=None, better="higher"), "mse": Aim(target=None, better="lower")}


@pytest.mark.parametrize("name, key", [("mAP@0.5:95", "map_0_5_95"), ("_top-1_", "top_1"), ("BLEU", "bleu")])
def test_a_key_is_of_small_letters_and_digits(name: str, key: str) -> None:
    assert slug(name) == key


@pytest.mark.parametrize(
    "values, expected",
    [
        ({}, "metric\n  Field required"),
        ({"metrics": {}}, "Value error, none of them has a target; at least one must be judged "),
        ({"metrics": {"map": {}}}, "none of them has a target"),
        ({"metrics": {"map": {"target": 1}}, "metric": "map"}, "`metrics` and `metric` both say"),
        ({"metrics": {"map": {"target": 1}}, "target": 0.5}, "`metrics` and `target` both say"),
        ({"metrics": {"map-50": {"target": 1}, "MAP 50": {}}}, "String should match pattern"),
        ({"metrics": {"map.50": {"target": 1}, "MAP_50": {}}}, "map.50 and MAP_50 cannot be told apart"),
        ({"metrics": {"map": {"target": "high"}}}, r"metrics.map.target\n  Input should be a valid number"),
        ({"metrics": {"map": {"target": math.nan}}}, "metrics.map.target\n  Input should be a finite number"),
        ({"metrics": {"map": {"target": 1, "better": "up"}}}, "metrics.map.better"),
        ({"metrics": {"map": {"goal": 1}}}, "metrics.map.goal\n  Extra inputs"),
        ({"metrics": {"map": 0.4}}, "metrics.map\n  Input should be"),
        ({"metrics": ["map"]}, "metrics\n  Input should be a valid dictionary"),
        ({"metric": "map", "target": math.inf}, "target\n  Input should be a finite number"),
        ({"metric": "map", "target": 1, "better": "sideways"}, "better"),
    ],
)
def test_what_is_no_description_is_refused(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        parameters(**values)


@given(numbers, numbers, ways)
def test_a_target_is_reached_from_its_own_side_and_at_it(value: float, target: float, better: Any) -> None:
    aim = Aim(target=target, better=better)
    assert aim.reached(target) and aim.reached(value) == reaches(value, target, better)
    assert aim.reached(worst([value, target], better)) == aim.reached(value), "the worst of two decides"
    assert not reaches(math.nan, target, better)


@given(numbers, st.floats(0.001, 1), ways)
def test_what_is_kept_lies_on_the_worse_side_by_the_share(reference: float, share: float, better: Any) -> None:
    floor, size = factor_kept(reference, share, better) * reference, abs(reference)
    assert reaches(reference, floor, better), "a framework is as good as itself"
    assert math.isclose(abs(reference - floor), (1 - share) * size, rel_tol=1e-6, abs_tol=1e-9 * size)


def test_of_an_accuracy_the_share_is_the_product() -> None:
    assert factor_kept(0.8, 0.99, "higher") * 0.8 == 0.99 * 0.8
    assert factor_kept(20.0, 0.99, "lower") * 20 == pytest.approx(20.2)
    assert factor_kept(-5.0, 0.99, "higher") * -5 == pytest.approx(-5.05)
    assert factor_kept(-5.0, 0.99, "lower") * -5 == pytest.approx(-4.95)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
entries = st.fixed_dictionaries({}, optional={"target": numbers | st.none() | anything, "better": ways | anything})


@given(st.dictionaries(st.sampled_from(["map", "map_50", "MAP", "b.c", ""]), entries | anything, max_size=3) | anything)
def test_whatever_is_given_is_judged_or_refused(metrics: Any) -> None:
    try:
        found = parameters(metrics=metrics, **({"metric": "top1", "target": 0.5} if metrics is None else {}))
    except ValidationError:
        return
    headline, *others = aims_of(found).items()
    assert headline == (found["metric"], Aim(target=found["target"], better=found.get("better", "higher")))
    assert all(name != headline[0] for name, _ in others)
