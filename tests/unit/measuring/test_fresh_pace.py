"""What knowing a part of the data gains, and how surely it is seen: docs/honesty.md has these figures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from proofmark.inference.timing.timing import LEAST_BATCHES
from proofmark.measuring import fresh_pace as module
from proofmark.measuring.fresh_pace import FRESH_PACE, Round, excused, fresh_pace
from proofmark.measuring.mixed import FEW, SHARE, SHARE_OF_FEW
from proofmark.measuring.pace import GRACE
from proofmark.monitoring.contention import CONTENDED

PAGE = (Path(__file__).parents[3] / "docs" / "honesty.md").read_text(encoding="utf-8")
STRENGTH = re.findall(r"^\| (\d+) % \| (\d+) % \| (\d+) % \|$", PAGE, re.MULTILINE)
"""By how much an engine is faster, what it knows by heart, in how many measurements that is seen: all in percent."""

WORK, NOISE = 0.01, 0.05
"""Seconds of a batch that is computed, and how far they scatter, as a share."""


def rounds(chance: np.random.Generator, known: float, noise: float) -> list[Round]:
    """Three of 200 batches, of an engine that knows a share of the samples; noise is lognormal."""
    made = []
    for _ in range(3):
        took = WORK * chance.lognormal(0, noise, 200)
        fresh = 200 // SHARE
        made.append(Round(took[:fresh].tolist(), (took[fresh:] * (1 - known)).tolist()))
    return made


def seen(known: float, noise: float, times: int) -> float:
    """In which share of measurements the engine is found."""
    chance = np.random.default_rng(1)
    checks = [fresh_pace(rounds(chance, known, noise)) for _ in range(times)]
    return sum(check is not None and not check.passed for check in checks) / times


@pytest.mark.parametrize("gain, known, found", STRENGTH)
def test_the_strength_on_the_page(gain: str, known: str, found: str) -> None:
    share = 1 - 1 / (1 + int(gain) / 100)
    assert round(100 * share) == int(known)
    assert seen(share, NOISE, 40) == pytest.approx(int(found) / 100, abs=0.05)


def test_two_rounds_of_the_fewest_batches_are_enough() -> None:
    """Of an engine that is a quarter faster on what it knows, as it may be beside the honesty round."""
    chance, found = np.random.default_rng(3), 0
    for _ in range(20):
        took = WORK * chance.lognormal(0, NOISE / 2, (2, LEAST_BATCHES))
        fresh = LEAST_BATCHES // SHARE_OF_FEW
        check = fresh_pace([Round(each[:fresh].tolist(), (each[fresh:] / 1.24).tolist()) for each in took])
        found += check is not None and not check.passed
    assert found >= 18


@pytest.mark.parametrize("found, batches", re.findall(r"(\d+) % of (?:measurements of )?3x(\d+)", PAGE))
def test_how_surely_each_fifth_answered_at_once_is_found(found: str, batches: str) -> None:
    """By an engine that knows all, and draws what it computes nevertheless."""
    chance, seen, many = np.random.default_rng(1), 0, int(batches)
    fresh = max(many // SHARE, min(many // SHARE_OF_FEW, FEW))
    for _ in range(60):
        made = []
        for _ in range(3):
            took = WORK * chance.lognormal(0, NOISE, many)
            answered = np.where(chance.random(many) < 0.2, 1e-5, took)
            made.append(Round(took[:fresh].tolist(), answered[fresh:].tolist()))
        check = fresh_pace(made)
        seen += check is not None and not check.passed
    assert seen / 60 == pytest.approx(int(found) / 100, abs=0.05)


def test_the_page_has_both_ends() -> None:
    found = [found for _, _, found in STRENGTH]
    assert found[0] == "0" and found[-1] == "100"


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
def test_an_honest_engine_is_not_accused(noise: float) -> None:
    assert seen(0.0, noise, 100) == 0.0


def test_a_few_calls_that_were_interrupted_accuse_nobody() -> None:
    honest = rounds(np.random.default_rng(2), 0.0, 0.02)
    fresh = [*honest[0].fresh]
    fresh[:3] = [0.3, 0.3, 0.3]
    check = fresh_pace([Round(fresh, honest[0].known), *honest[1:]])
    assert check is not None and check.passed and check.figure is not None and check.figure < 1.05


def alibi(chance: np.random.Generator) -> list[Round]:
    """A third is gained on each known batch, and one of them takes as long as ten."""
    return [Round(each.fresh, [10 * WORK, *each.known[1:]]) for each in rounds(chance, 0.35, NOISE)]


def paid_back(chance: np.random.Generator) -> list[Round]:
    """Nine tenths are gained on each known batch of three rounds, and paid back in a fourth."""
    made = [each for _ in range(8) for each in rounds(chance, 0.9, NOISE)]
    return [
        Round(each.fresh, [4 * WORK for _ in each.known]) if not number % 4 else each
        for number, each in enumerate(made)
    ]


def slow_round(chance: np.random.Generator) -> list[Round]:
    """The same, in a round that is slow as a whole."""
    made = [each for _ in range(8) for each in rounds(chance, 0.9, NOISE)]
    slow = Round([8 * WORK] * 25, [8 * WORK] * 175)
    return [slow if not number % 4 else each for number, each in enumerate(made)]


@pytest.mark.parametrize("way", [alibi, paid_back, slow_round])
def test_what_is_gained_is_not_paid_back_elsewhere(way: Callable[[np.random.Generator], list[Round]]) -> None:
    """A long call would hide all others in a sum, and in what times by chance come to."""
    for seed in range(5):
        check = fresh_pace(way(np.random.default_rng(seed)))
        assert check is not None and not check.passed, check


def test_a_round_counts_as_much_as_another_and_a_call_as_two_at_most() -> None:
    slow, quick = Round([1.0] * 4, [1.0] * 8), Round([0.4] * 4, [0.2] * 4 + [0.001] * 4)
    check = fresh_pace([slow, quick])
    unit = 0.2 + GRACE  # the median of the second; a call of it is no longer than two
    usual = 1.0 + ((0.2 + 0.001) / 2 + GRACE) / unit
    slow_unit = 1.0 + GRACE
    assert check is not None and check.figure == pytest.approx((1 / slow_unit + 0.4 / unit) / usual, rel=1e-6)
    longer = fresh_pace([slow, Round([40.0] * 4, quick.known)])
    assert longer is not None and longer.figure == pytest.approx((1 / slow_unit + 2) / usual, rel=1e-6)


SLOW = Round([0.2] * 10, [0.1] * 30)


def test_what_is_told_of_it() -> None:
    check = fresh_pace([SLOW])
    assert check is not None and (check.name, check.passed) == ("no slower when fresh", False)
    assert check.meaning == "in the timed rounds, inputs that nobody has seen take it longer"
    assert check.bound == FRESH_PACE and check.figure == pytest.approx(2.0, rel=0.01)


def test_up_to_its_bound_nobody_is_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    check = fresh_pace([SLOW])
    assert check is not None and check.figure is not None
    monkeypatch.setattr(module, "FRESH_PACE", check.figure)
    at_bound = fresh_pace([SLOW])
    assert at_bound is not None and at_bound.passed
    monkeypatch.setattr(module, "FRESH_PACE", check.figure - 1e-6)
    monkeypatch.setattr(module, "CHANCE", module._by_chance([SLOW], 2.0))
    as_likely = fresh_pace([SLOW])
    assert as_likely is not None and as_likely.passed


def test_times_that_are_alike_are_chance_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """However their sum is rounded."""
    monkeypatch.setattr(module, "FRESH_PACE", 0.5)
    alike = Round([0.1] * 10, [0.1] * 30)
    check = fresh_pace([alike])
    assert check is not None and check.passed
    assert module._by_chance([alike], 1.0) == 1.0


def test_on_a_crowded_machine_there_is_no_accusation_and_no_result() -> None:
    check = fresh_pace(rounds(np.random.default_rng(1), 0.5, NOISE))
    assert check is not None and not check.passed
    assert excused(check, CONTENDED - 0.01) == (check, [])
    found, (message,) = excused(check, CONTENDED)
    assert found.passed and found.bound is None and found.figure == check.figure
    assert message.startswith(
        "other processes took 10% of the cores, so nobody is accused of this: in the timed rounds, "
    )
    assert re.search(r"inputs that nobody has seen take it longer \(1\.9\d* times\)$", message)
    honest = fresh_pace(rounds(np.random.default_rng(1), 0.0, NOISE))
    assert honest is not None and excused(honest, 0.5) == (honest, [])


def test_without_fresh_batches_there_is_no_check() -> None:
    assert fresh_pace([]) is None and fresh_pace([Round([], [1.0]), Round([1.0], [])]) is None
