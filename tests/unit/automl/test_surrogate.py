from __future__ import annotations

import random

import pytest

from proofmark.automl.distance import Descriptor
from proofmark.automl.network.seeds import small_network
from proofmark.automl.pool import MOST, best_and_last
from proofmark.automl.surrogate import BETA, Surrogate
from tests.unit.automl.graphs import random_chain

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = small_network(size=8, width=4)


def networks(count: int, seed: int = 0) -> list[Descriptor]:
    chance = random.Random(seed)
    return [Descriptor.of(random_chain(SMALL, chance, most=1 + number % 4)[1]) for number in range(count)]


def test_it_is_sure_of_what_it_has_seen_and_unsure_far_away() -> None:
    trained = networks(10)
    accuracies = [0.5 + 0.02 * len(each.layers) / 40 for each in trained]
    surrogate = Surrogate(trained, accuracies)
    near = surrogate.bounds(trained)
    spread = (max(accuracies) - min(accuracies)) or 1
    assert all(abs(bound - accuracy) < 2 * BETA * spread for bound, accuracy in zip(near, accuracies, strict=True))
    far = surrogate.bounds([Descriptor.of(random_chain(small_network(size=8, width=32), random.Random(5))[1])])
    assert far[0] > min(near)


def test_it_follows_what_is_near() -> None:
    trained = networks(12, seed=1)
    accuracies = [len(each.layers) / 100 for each in trained]
    bounds = Surrogate(trained, accuracies).bounds(trained)
    best, worst = accuracies.index(max(accuracies)), accuracies.index(min(accuracies))
    assert bounds[best] > bounds[worst]


def test_one_network_and_equal_accuracies_do() -> None:
    assert Surrogate(networks(1), [0.3]).bounds(networks(2)).shape == (2,)
    assert Surrogate(networks(3), [0.3] * 3).bounds(networks(2)).shape == (2,)


def test_of_many_the_best_and_the_last_are_kept() -> None:
    accuracies = [float(number % 1000) for number in range(5000)]
    chosen = best_and_last(accuracies)
    assert len(chosen) == len(set(chosen)) == MOST
    assert {number for number in range(5000) if accuracies[number] > 985} <= set(chosen)
    assert set(range(4950, 4980)) <= set(chosen)
    assert best_and_last([0.1] * MOST) == list(range(MOST))
