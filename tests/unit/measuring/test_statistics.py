"""Spreads, and percentiles that need samples."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.measuring import statistics as measured
from proofmark.measuring.statistics import discardable, rate, samples_needed, supported_percentiles
from proofmark.record.policy import TAILS


@pytest.mark.parametrize(
    "percentile, discarded, needed",
    [
        # computed from MLPerf LoadGen's rule; 64 and 662 are LoadGen's own constants
        (90, 0, 44), (90, 1, 64), (90, 2, 81), (90, 5, 127), (90, 10, 197), (90, 100, 1_246),
        (95, 0, 90), (95, 1, 130), (95, 2, 165), (95, 5, 259), (95, 10, 398), (95, 100, 2_504),
        (99, 0, 459), (99, 1, 662), (99, 2, 838), (99, 5, 1_307), (99, 10, 2_010), (99, 100, 12_571),
        (99.9, 0, 4_603), (99.9, 1, 6_636), (99.9, 2, 8_403), (99.9, 5, 13_105), (99.9, 10, 20_140),
        (99.9, 100, 125_826),
    ],
)  # fmt: skip
def test_samples_needed(percentile: float, discarded: int, needed: int) -> None:
    assert samples_needed(percentile, discarded) == needed


@given(st.floats(1, 99.9), st.integers(0, 20))
def test_it_is_the_smallest_that_is_enough(percentile: float, discarded: int) -> None:
    def tail_probability(n: int) -> float:
        tail = 1 - percentile / 100
        return math.fsum(math.comb(n, i) * tail**i * (1 - tail) ** (n - i) for i in range(discarded + 1))

    n = samples_needed(percentile, discarded)
    assert tail_probability(n) <= 0.01 * (1 + 1e-9)
    assert n == discarded + 1 or tail_probability(n - 1) > 0.01 * (1 - 1e-9)


@given(st.sampled_from(TAILS), st.integers(0, 20_000))
def test_as_many_are_discarded_as_there_are_enough_for(percentile: float, count: int) -> None:
    """What any record says of a tail is one of its samples: another of them would be another figure."""
    found = discardable(percentile, count)
    assert not found or samples_needed(percentile, found) <= count
    assert samples_needed(percentile, found + 1) > count


def test_what_is_discarded_of_very_many_is_found_in_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick engine's rounds have millions of batches, and each process that reads their log asks."""
    terms, real = [0], math.exp

    def counted(value: float) -> float:
        terms[0] += 1
        return real(value)

    monkeypatch.setattr(measured.math, "exp", counted)
    assert discardable(90, 500_000) == 49_506
    assert terms[0] <= 50_000


@pytest.mark.parametrize(
    "least, names", [(0, ""), (11, "p50"), (64, "p50 p90"), (130, "p50 p90 p95"), (662, "p50 p90 p95 p99")]
)
def test_no_percentile_without_its_samples(least: int, names: str) -> None:
    assert " ".join(supported_percentiles(range(least))) == names
    assert " ".join(supported_percentiles(range(least - 1))) == names.rpartition(" ")[0]


def test_tails_are_estimated_as_loadgen_does() -> None:
    found = supported_percentiles([float(n) for n in range(1, 1001)])
    assert found == {"p50": 500, "p90": 923, "p95": 967, "p99": 999}


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=900))
def test_percentiles_are_samples_in_order(values: list[float]) -> None:
    found = list(supported_percentiles(values).values())
    assert found == sorted(found)
    assert set(found) <= set(values)


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(0.1, 1e6)), min_size=1, max_size=20))
def test_the_spread_of_the_rounds_stands_beside_a_rate(rounds: list[tuple[float, float]]) -> None:
    found = rate(*zip(*rounds, strict=True))
    rates = [items / seconds for items, seconds in rounds]
    assert (found.min, found.max) == (min(rates), max(rates))
    assert found.min <= found.value * (1 + 1e-9) and found.value <= found.max * (1 + 1e-9)
    assert found.stdev == (statistics.stdev(rates) if len(rates) > 1 else None)


def test_a_rate_is_all_items_over_all_seconds() -> None:
    """A round of a thousandth of the time, by chance ten times as fast, changes next to nothing."""
    assert rate([1000, 1], [10.0, 0.001]).value == pytest.approx(1001 / 10.001)
    assert statistics.fmean([1000 / 10.0, 1 / 0.001]) == 550, "the mean of the rates that it is not"


@pytest.mark.parametrize("items, seconds", [([], []), ([1], [0.0]), ([1], [float("nan")]), ([1, 2], [1.0])])
def test_a_rate_of_no_time_is_refused(items: list[float], seconds: list[float]) -> None:
    with pytest.raises(ValueError):
        rate(items, seconds)


@pytest.mark.parametrize("items, seconds", [([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0]), ([], [])])
def test_a_rate_needs_the_same_rounds_on_both_sides(items: list[float], seconds: list[float]) -> None:
    with pytest.raises(ValueError, match=f"^{len(items)} rounds have items, {len(seconds)} have seconds$"):
        rate(items, seconds)


@pytest.mark.parametrize("count", [11, 12, 13])
def test_the_median_is_the_middle_one_or_the_lower_of_two(count: int) -> None:
    assert supported_percentiles(range(count))["p50"] == (count - 1) // 2
