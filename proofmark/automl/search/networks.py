"""Networks of a search: the seed, children by morphisms, and hyper-parameters that are part of a network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from proofmark.automl.flops import compatible, honest
from proofmark.automl.graph import Graph, parse_graph
from proofmark.automl.proposal import Finished, Limits, propose
from proofmark.automl.search.ahead import Made
from proofmark.automl.search.state import Trial
from proofmark.automl.settings import with_dropout, with_kernel


class Morphisms:
    """Children by network morphisms, proposed by Bayesian optimisation over the distance between architectures."""

    def __init__(self, seeds: Sequence[Graph], random_seed: int, growth: float = math.inf) -> None:
        """Take the networks that trials of the first round have in turn.

        Args:
            growth: how many times the operations of the first one a child's may be.
        """
        self._seeds, self._random = seeds, random_seed
        self._limits = Limits(training_flops=growth * honest(seeds[0]).training)
        self._known = dict[int, Graph]()

    def seed(self, number: int) -> dict[str, Any]:
        """See `Networks`."""
        return self._seeds[number % len(self._seeds)].model_dump(mode="json")

    def propose(self, finished: Sequence[Trial], taken: Sequence[dict[str, Any]], number: int) -> Made | None:
        """See `Networks`."""
        parents = [Finished(trial.number, self._graph(trial), trial.accuracy or 0.0) for trial in finished]
        others = [parse_graph(graph, "a trial's network") for graph in taken]
        found = propose(parents, self._random * 1_000_003 + number, others, self._limits)
        if found is None:
            return None
        operations = [operation.model_dump(mode="json") for operation in found.operations]
        return Made(found.parent, operations, found.graph.model_dump(mode="json"))

    def settled(self, graph: dict[str, Any], hyperparameters: dict[str, Any]) -> dict[str, Any]:
        """See `Networks`."""
        whole = parse_graph(graph, "a proposal")
        return settled(whole, hyperparameters).model_dump(mode="json")

    def per_image(self, graph: dict[str, Any]) -> dict[str, int]:
        """See `Networks`."""
        whole = parse_graph(graph, "a proposal")
        own, theirs = honest(whole), compatible(whole)
        return {
            "forward": own.forward,
            "training": own.training,
            "compatible_forward": theirs.forward,
            "compatible_training": theirs.training,
            "parameters": whole.parameters,
        }

    def _graph(self, trial: Trial) -> Graph:
        """A trial's network, parsed once."""
        if trial.number not in self._known:
            self._known[trial.number] = parse_graph(trial.begun["graph"], f"trial {trial.number}")
        return self._known[trial.number]


def settled(graph: Graph, hyperparameters: dict[str, Any]) -> Graph:
    """A network with its dropout and its kernel size."""
    return with_kernel(with_dropout(graph, hyperparameters["dropout"]), hyperparameters["kernel_size"])
