"""Pairs of calls: which are clear, which accuse, and what noise can't do."""

from __future__ import annotations

import math
import random

import pytest

from proofmark.measuring import pace
from proofmark.measuring.pace import FEWEST, GRACE, MOST, PACE, Paces, by_chance


def test_few_pairs_clear_an_engine_that_is_as_fast_either_way() -> None:
    assert Paces([1.0] * FEWEST).clear
    assert not Paces([1.0] * (FEWEST - 1)).clear
    assert not Paces([1.08] * MOST).clear


def test_it_is_held_by_all_that_it_gains_and_not_by_its_middling_call() -> None:
    """Nine of twenty known by heart: the median is 1."""
    pairs = [10.0 if number % 20 < 9 else 1.0 for number in range(MOST)]
    assert not Paces(pairs).clear and Paces(pairs).accused


def test_a_gain_within_the_bound_is_no_accusation() -> None:
    assert not Paces([PACE] * MOST).accused
    assert Paces([PACE + 0.01] * MOST).accused
    assert not Paces([PACE + 0.01] * (MOST - 1)).accused


@pytest.mark.parametrize("interrupted", [1, 4, 8])
def test_interrupted_calls_accuse_nobody(interrupted: int) -> None:
    pairs = [1.0] * (MOST - interrupted) + [100.0] * interrupted
    assert Paces(pairs).mean > PACE and not Paces(pairs).accused


def test_noise_on_either_side_accuses_nobody() -> None:
    """A fifth of all calls takes up to thirty times as long."""
    chance, accused = random.Random(3), 0

    def call() -> float:
        return math.exp(chance.gauss(0, 0.2)) * (1 + (chance.expovariate(0.1) if chance.random() < 0.2 else 0))

    for _ in range(100):
        paces = Paces()
        while len(paces.ratios) < MOST and not paces.clear:
            paces.add(call(), call())
        accused += paces.accused
    assert accused == 0


def test_what_chance_does() -> None:
    assert by_chance([2.0] * 20) < 0.001
    assert by_chance([PACE**2, 1.0]) == pytest.approx(0.75, abs=0.02)
    assert by_chance([2.0, 2.0]) == pytest.approx(0.25, abs=0.02)
    assert by_chance([2.0, 2.0, 0.5]) == by_chance([2.0, 2.0, 0.5])


def test_a_moment_is_forgiven() -> None:
    paces = Paces()
    paces.add(GRACE, 0.0)
    assert paces.ratios == [1.0]


def test_the_bounds_are_those_that_were_measured() -> None:
    assert (FEWEST, MOST, GRACE) == (4, 32, 50e-6)
    assert by_chance([2.0, 2.0]) == 0.2485, "the same coins for everybody, as many as were said"


def test_bounds_belong_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    cleared, doubted = Paces([1.02, 1.07, 1.05, 1.06]), Paces([1.5, 1.3] * MOST)
    monkeypatch.setattr(pace, "CLEAR", cleared.mean)
    assert cleared.clear
    monkeypatch.setattr(pace, "by_chance", lambda ratios: 0.0001)
    assert not doubted.accused
    monkeypatch.setattr(pace, "by_chance", lambda ratios: 0.00009)
    assert doubted.accused
