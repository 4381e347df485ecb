from __future__ import annotations

import math
import random
import statistics
from typing import Any

import pytest

from proofmark.automl.distance import Descriptor, distances
from proofmark.automl.morphism.grow import grown, random_growth
from proofmark.automl.morphism.operations import Deeper, Wider
from proofmark.automl.network.flops import honest
from proofmark.automl.network.graph import IMAGE, Graph
from proofmark.automl.network.layers import BatchNorm, Convolution, Dense, GlobalAveragePool, Node, Relu
from proofmark.automl.network.seeds import small_network
from proofmark.automl.proposal import Finished, Limits, Proposal, proposals
from tests.unit.automl.graphs import distance, random_chain

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = small_network(size=8, width=4)


def propose(finished: list[Finished], seed: int, **more: Any) -> Proposal | None:
    return next(iter(proposals(finished, seed, **more)), None)


def plain(convolutions: int) -> Graph:
    nodes, last = list[Node](), IMAGE
    for number in range(convolutions):
        nodes += [
            Convolution(name=f"c{number}", inputs=(last,), channels=4, kernel=3),
            BatchNorm(name=f"n{number}", inputs=(f"c{number}",)),
            Relu(name=f"r{number}", inputs=(f"n{number}",)),
        ]
        last = f"r{number}"
    nodes += [GlobalAveragePool(name="pool", inputs=(last,)), Dense(name="dense", inputs=("pool",), channels=3)]
    return Graph(channels=1, size=8, nodes=tuple(nodes))


def test_a_parent_is_a_finished_trial_and_its_operations_lead_to_the_child() -> None:
    finished = [Finished(7, SMALL, 0.4), Finished(9, grown(SMALL, Deeper(after="stem_relu")), 0.5)]
    for seed in range(4):
        found = propose(finished, seed)
        assert found is not None
        parent = {trial.id: trial.graph for trial in finished}[found.parent]
        assert found.operations
        assert grown(parent, *found.operations) == found.graph
        assert all(distance(found.graph, trial.graph) > 0 for trial in finished)


def test_the_same_arguments_give_the_same_proposal() -> None:
    finished = [Finished(0, SMALL, 0.4), Finished(1, grown(SMALL, Wider(conv="s2b1_1_conv")), 0.3)]
    assert propose(finished, 3) == propose(finished, 3)
    assert len({propose(finished, seed).graph.model_dump_json() for seed in range(4)}) > 1  # type: ignore[union-attr]


def test_limits_are_kept() -> None:
    limits = Limits(training_flops=1.5 * honest(SMALL).training, parameters=2 * SMALL.parameters, nodes=60)
    for seed in range(4):
        found = propose([Finished(0, SMALL, 0.4)], seed, limits=limits)
        assert found is not None and limits.allow(found.graph)
        assert found.graph.parameters <= 2 * SMALL.parameters
    assert propose([Finished(0, SMALL, 0.4)], 0, limits=Limits(nodes=10)) is None
    assert propose([Finished(0, SMALL, 0.4)], 0, limits=Limits(parameters=SMALL.parameters)) is None


def test_what_is_taken_is_not_proposed_again() -> None:
    one = plain(1)
    taken = [grown(one, Deeper(after="r0"))]
    only = {"kinds": (Deeper,), "limits": Limits(nodes=len(one.nodes) + 4)}
    assert propose([Finished(0, one, 0.4)], 0, **only) is not None
    assert propose([Finished(0, one, 0.4)], 0, taken=taken, **only) is None


def test_the_first_trial_alone_and_equal_accuracies_are_enough() -> None:
    assert propose([Finished(0, SMALL, 0.0)], 0) is not None
    twice = [Finished(0, SMALL, 0.5), Finished(1, SMALL, 0.5), Finished(2, plain(3), 0.5)]
    assert propose(twice, 0) is not None


def planted(seed: int) -> Descriptor:
    """What is to be found: some operations away."""
    return Descriptor.of(random_chain(plain(2), random.Random(1000 + seed), most=6)[1])


def best_of(seed: int, how: str, trials: int = 4) -> float:
    """Best accuracy, by nearness to a hidden network, of trials that were chosen knowing at least two."""
    hidden, chance = planted(seed), random.Random(seed)
    sign = -1 if how == "flipped" else 1

    def accuracy(graph: Graph) -> float:
        return math.exp(-float(distances([Descriptor.of(graph)], [hidden])[0, 0]) / 5)

    finished = [Finished(0, plain(2), sign * accuracy(plain(2)))]
    while len(finished) < trials:
        if how == "random":
            step = random_growth(chance.choice(finished).graph, chance)
            child = step[1] if step else finished[0].graph
        else:
            found = propose(finished, 100 * seed + len(finished))
            assert found is not None
            child = found.graph
        finished.append(Finished(len(finished), child, sign * accuracy(child)))
    return max(sign * trial.accuracy for trial in finished[2:])


def test_it_beats_chance_and_loses_when_the_sign_is_flipped() -> None:
    found = {how: statistics.mean(best_of(seed, how) for seed in range(20)) for how in ("bo", "random", "flipped")}
    assert found["bo"] > 1.3 * found["random"]
    assert found["flipped"] < 0.9 * found["random"]
