"""What speaks against a measurement, at each bound and on both sides of it."""

from __future__ import annotations

from typing import Any

import pytest

from proofmark.record.parts import Contention, Rate
from proofmark.record.policy import Noise
from proofmark.rules.case_file import NOISE
from proofmark.verdict.noise import bound_of, contention_of, noise_of
from tests.unit.records import record, rounds

BOUNDS = Noise(scatter=None, contended=0.5, idle=0.25)
SCATTERS = "the core throughput of the 3 rounds scatters by 7.0%, more than 5.0%"
HARDLY = "the core throughput of the 3 rounds scatters by 5.001%, more than 5.000%"


def seen(**changes: Any) -> Contention:
    return Contention(**{"others": 0.0, "stolen": 0.0, "idle": 0.0, **changes})


def core(noise: float | None) -> Rate:
    return Rate(value=100.0, stdev=None if noise is None else 100 * noise, min=90.0, max=110.0)


def test_the_bound_is_the_policys_or_the_cases_or_the_usual_one() -> None:
    asked = record(config={"max_noise": 0.2})
    assert bound_of(asked) == 0.2 and bound_of(record(config={})) == NOISE
    noise = asked.policy.noise.model_copy(update={"scatter": 0.01})
    strict = asked.model_copy(update={"policy": asked.policy.model_copy(update={"noise": noise})})
    assert bound_of(strict) == 0.01


@pytest.mark.parametrize("noise, expected", [(None, []), (0.05, []), (0.05001, [HARDLY]), (0.07, [SCATTERS])])
def test_rounds_may_scatter_as_far_as_the_bound(noise: float | None, expected: list[str]) -> None:
    assert noise_of(rounds(), core(noise), 0.05, BOUNDS) == expected


@pytest.mark.parametrize(
    "contention, expected",
    [
        (None, []),
        (seen(others=0.25), []),
        (seen(others=0.5, idle=0.26), []),
        (
            seen(others=0.5, idle=0.25),
            ["contention: others took 50.0% of the cores while it was timed, more than 25.0%, and 25.0% were idle"],
        ),
        (
            seen(others=0.26, stolen=0.001),
            ["contention: others took 26.0% of the cores while it was timed, more than 25.0%, and 0.0% were idle"],
        ),
        (
            seen(others=0.95),
            ["contention: others took 95.0% of the cores while it was timed, more than 25.0%, and 0.0% were idle"],
        ),
        (
            seen(others=0.5, stolen=0.125),
            [
                "contention: others took 50.0% of the cores (12.5% the host of this virtual machine) while it "
                "was timed, more than 25.0%, and 0.0% were idle"
            ],
        ),
    ],
)
def test_others_may_take_their_share_of_the_bound(contention: Contention | None, expected: list[str]) -> None:
    assert contention_of(contention, 0.5, BOUNDS) == expected


def test_contention_is_that_of_all_rounds_by_their_seconds() -> None:
    busy = {"contention": seen(others=1.0), "whole_seconds": 0.5, "core_seconds": 0.5}
    timed = rounds(busy, {"contention": None, "whole_seconds": 9.0})
    (message,) = noise_of(timed, core(0.0), 0.4, BOUNDS)
    assert message.startswith("contention: others took 25.0% of the cores while it was timed, more than 20.0%")


@pytest.mark.parametrize(
    "clocks, expected",
    [
        ((1000.0, 1100.0, None), []),
        ((1101.0, 1000.0, 1050.0), ["the processor's clock went from 1101 to 1000 MHz"]),
        ((None, None, None), []),
    ],
)
def test_a_clock_that_changed_is_told_beside_what_it_may_explain(clocks: Any, expected: list[str]) -> None:
    timed = rounds(*({"contention": seen(clock_mhz=clock)} for clock in clocks))
    assert noise_of(timed, core(0.07), 0.05, BOUNDS) == [SCATTERS, *expected]
    assert noise_of(timed, core(0.0), 0.05, BOUNDS) == [], "by itself it says nothing of a figure"
