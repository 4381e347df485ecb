"""Networks with their hyper-parameters in them, which are no larger than a search allows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from proofmark.automl.morphism.grow import random_growth
from proofmark.automl.network import hyperparameters as settings_of
from proofmark.automl.network.flops import honest
from proofmark.automl.network.graph import parse_graph
from proofmark.automl.network.seeds import small_network
from proofmark.automl.proposal import Limits
from proofmark.automl.search.networks import Morphisms
from proofmark.errors import ProofmarkError
from tests.automl.searches import Numbers, search, settings

SEED = small_network(size=8, width=4)
JSON = SEED.model_dump(mode="json")


class NoneWithLargeKernels(Numbers):
    """Networks that are too large with any kernel but the first."""

    def settled(self, graph: dict[str, Any], hyperparameters: dict[str, Any]) -> dict[str, Any] | None:
        return graph if hyperparameters["kernel_size"] == 3 else None


class TooLarge(Numbers):
    """Networks that are too large with any kernel."""

    def settled(self, graph: dict[str, Any], hyperparameters: dict[str, Any]) -> None:
        return None


class TooLargeAtFirst(Numbers):
    """Children that are too large, each kind once."""

    def __init__(self) -> None:
        self.dropped = set[int]()

    def settled(self, graph: dict[str, Any], hyperparameters: dict[str, Any]) -> dict[str, Any] | None:
        if not graph["network"] or graph["network"] in self.dropped:
            return graph
        self.dropped.add(graph["network"])
        return None


def with_kernel(kernel: int) -> dict[str, Any]:
    return {"kernel_size": kernel, "dropout": 0.0}


def test_a_kernel_makes_no_network_larger_than_a_child_may_be() -> None:
    assert Morphisms([SEED], 0, growth=2.0).settled(JSON, with_kernel(5)) is None
    found = Morphisms([SEED], 0, growth=4.0).settled(JSON, with_kernel(5))
    assert found is not None
    ratio = honest(parse_graph(found, "it")).training / honest(SEED).training
    assert 2.0 < ratio < 4.0


def test_a_network_of_the_users_own_may_be_larger_but_is_made_no_larger() -> None:
    small = small_network(size=8, width=1)
    networks = Morphisms([small, SEED], 0, growth=1.5)
    assert networks.settled(JSON, with_kernel(3)) == JSON
    assert networks.settled(JSON, with_kernel(5)) is None


def test_where_the_studys_kernel_is_too_large_the_parents_is_taken(tmp_path: Path) -> None:
    """And the study remembers what was really trained."""
    state = search(tmp_path / "search", settings(8), networks=NoneWithLargeKernels())
    assert state.ended == "8 trials were begun"
    begun = [trial.begun for trial in state.trials.values()]
    assert {each["hyperparameters"]["kernel_size"] for each in begun} == {3}
    numbers = [each["study"] for each in begun]
    assert numbers == sorted(set(numbers)) and numbers[-1] > 7, "one that the study chose was none"


def test_a_child_grows_within_its_limits_with_its_parents_kernel() -> None:
    """Its new convolutions get that when they have grown."""
    parent, limits = settings_of.with_kernel(SEED, 5), Limits(training_flops=4 * honest(SEED).training)
    ratios = []
    for seed in range(60):
        step = random_growth(parent, random.Random(seed))
        if step and limits.allow(step[1]):
            ratios.append(honest(settings_of.with_kernel(step[1], 5)).training / honest(SEED).training)
    assert len(ratios) > 10 and max(ratios) <= 4.0


def test_a_child_that_is_too_large_after_all_is_dropped_and_the_search_goes_on(tmp_path: Path) -> None:
    networks = TooLargeAtFirst()
    state = search(tmp_path / "search", settings(4), networks=networks)
    assert state.ended == "4 trials were begun" and networks.dropped == {1, 2, 3}


def test_a_network_that_is_too_large_with_that_too_is_a_line(tmp_path: Path) -> None:
    with pytest.raises(ProofmarkError, match="trial 0: its network is too large with hyper-parameters") as raised:
        search(tmp_path / "search", settings(2), networks=TooLarge())
    assert "\n" not in str(raised.value)
