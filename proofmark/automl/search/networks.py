"""Networks of a search: the seed, children by morphisms, and hyper-parameters that are part of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from proofmark.automl.distance import Descriptor
from proofmark.automl.network.flops import compatible, honest
from proofmark.automl.network.graph import Graph, parse_graph
from proofmark.automl.network.hyperparameters import with_dropout, with_kernel
from proofmark.automl.pool import MOST, best_and_last
from proofmark.automl.proposal import Finished, Limits, Proposal, proposals
from proofmark.automl.search.ahead import SHARING, Made
from proofmark.automl.search.state import Trial


class Morphisms:
    """Children by network morphisms, proposed by Bayesian optimisation over the distance between architectures.

    What a proposal costs does not grow with the trials: it rests on some of them, and of the others it knows which
    networks they had.
    """

    def __init__(self, seeds: Sequence[Graph], random_seed: int, growth: float) -> None:
        """Take the networks that trials of the first round have in turn.

        Args:
            growth: how many times the operations of the first one a child's may be.
        """
        self._seeds, self._random = seeds, random_seed
        self._limits = Limits(training_flops=growth * honest(seeds[0]).training)
        self._graphs = dict[int, Graph]()
        self._stock = list[Proposal]()
        self._known = _Known()

    def seed(self, number: int) -> dict[str, Any]:
        """See `Networks`."""
        return self._seeds[number % len(self._seeds)].model_dump(mode="json")

    def propose(self, finished: Sequence[Trial], taken: Sequence[Trial], number: int) -> Made | None:
        """See `Networks`. Where many trials run, more than one network comes of one annealing: its next best."""
        if not self._stock:
            running = sum(not trial.over for trial in taken)
            self._stock = self._annealed(finished, taken, number)[: 1 + running // SHARING]
        if not self._stock:
            return None
        found = self._stock.pop(0)
        self._known.add(found.graph)  # it may wait for its trial to begin while others are proposed
        operations = [operation.model_dump(mode="json") for operation in found.operations]
        return Made(found.parent, operations, found.graph.model_dump(mode="json"))

    def settled(self, graph: dict[str, Any], hyperparameters: dict[str, Any]) -> dict[str, Any] | None:
        """See `Networks`."""
        whole = parse_graph(graph, "a proposal")
        try:
            found = settled(whole, hyperparameters)
        except ValidationError:  # what a case's file may say of hyper-parameters leaves nothing else
            return None
        if not self._limits.allow(found) and honest(found).training > honest(whole).training:
            return None  # a user's own network may be larger than a child, but is made no larger
        return found.model_dump(mode="json")

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

    def _annealed(self, finished: Sequence[Trial], taken: Sequence[Trial], number: int) -> list[Proposal]:
        chosen = [finished[place] for place in best_and_last([trial.accuracy or 0.0 for trial in finished])]
        recent = taken[-MOST // 2 :]
        self._graphs = {trial.number: self._graph(trial) for trial in (*chosen, *recent)}
        for trial in (*finished, *taken):
            if trial.number not in self._known.trials:
                self._known.add(self._graph(trial), trial.number)
        parents = [Finished(trial.number, self._graphs[trial.number], trial.accuracy or 0.0) for trial in chosen]
        others = [self._graphs[trial.number] for trial in recent]
        seed = self._random * 1_000_003 + number
        return proposals(parents, seed, others, self._limits, known=self._known)

    def _graph(self, trial: Trial) -> Graph:
        """A trial's network; those of the last annealing are parsed already."""
        return self._graphs.get(trial.number) or parse_graph(trial.begun["graph"], f"trial {trial.number}")


class _Known:
    """Networks that trials have had, by the hash of their descriptors: eight bytes each."""

    def __init__(self) -> None:
        self.trials = set[int]()
        self._hashes = set[int]()

    def add(self, graph: Graph, trial: int | None = None) -> None:
        self.trials |= {trial} if trial is not None else set()
        self._hashes.add(hash(Descriptor.of(graph)))

    def __contains__(self, network: object) -> bool:
        return hash(network) in self._hashes


def settled(graph: Graph, hyperparameters: dict[str, Any]) -> Graph:
    """A network with its dropout and its kernel size."""
    return with_kernel(with_dropout(graph, hyperparameters["dropout"]), hyperparameters["kernel_size"])
