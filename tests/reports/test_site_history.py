"""Where a trend changed, on simulated ones whose law is known."""

from __future__ import annotations

import numpy as np
import pytest

from reports.site.history import change_points


@pytest.mark.parametrize("runs", [8, 20, 100])
def test_noise_alone_is_no_change(runs: int) -> None:
    chance = np.random.default_rng(1)
    alarms = sum(bool(change_points(list(chance.normal(1000, 10, runs)))) for _ in range(300))
    assert alarms <= 9, "of 300; at most 1.5 % were seen in 1,000"


@pytest.mark.parametrize("runs", [20, 100])
def test_a_step_is_found_where_it_is(runs: int) -> None:
    chance = np.random.default_rng(2)
    found = 0
    for _ in range(100):
        series = chance.normal(1000, 10, runs)
        series[runs // 2 :] -= 40
        found += [abs(at - runs // 2) <= 1 for at in change_points(list(series))] == [True]
    assert found >= 93


def test_two_steps_are_two_changes() -> None:
    chance = np.random.default_rng(3)
    series = np.concatenate([chance.normal(mean, 1, 30) for mean in (100, 90, 95)])
    assert change_points(list(series)) == [30, 60]


@pytest.mark.parametrize(
    "values", [[], [1.0], [1.0] * 50, [0.0] * 50, [1.0, 2.0, 1.0, 2.0, 1.0], [1e300] * 10 + [-1e300] * 10]
)
def test_what_says_nothing_has_no_change(values: list[float]) -> None:
    assert len(change_points(values)) <= 1


def test_equal_runs_that_become_other_equal_runs_changed() -> None:
    assert change_points([5.0] * 10 + [6.0] * 10) == [10]
