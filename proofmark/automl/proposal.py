"""Which network to train next: simulated annealing for the highest upper confidence bound, as in the original.

All trained networks wait in a queue by their accuracy. The first is taken out while a temperature falls; it is grown in
some ways, and what comes of it is valued by the surrogate and waits too. The best valued is proposed: its parent is
the trained network at the root of its chain of operations. Unlike the original's, the candidates are valued in batches,
the kernel's scale is fitted, and networks that are being trained count as if they had the mean accuracy.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Container, Sequence
from itertools import islice
from typing import NamedTuple

from pydantic import ValidationError
from threadpoolctl import threadpool_limits

from proofmark.automl.distance import Descriptor
from proofmark.automl.morphism.grow import KINDS, random_growth
from proofmark.automl.morphism.operations import Operation
from proofmark.automl.network.flops import honest
from proofmark.automl.network.graph import MOST_GROWN, Graph
from proofmark.automl.network.hyperparameters import kernels, with_kernel
from proofmark.automl.surrogate import Surrogate

NEIGHBOURS, ATTEMPTS = 8, 16
HOTTEST, COLDEST, COOLING = 1.0, 1e-4, 0.5


class Finished(NamedTuple):
    """A trial that is over: its accuracy, 0 to 1, is what the search maximises."""

    id: int
    graph: Graph
    accuracy: float


class Limits(NamedTuple):
    """What no child may exceed: operations of one image's training, parameters, nodes."""

    training_flops: float = math.inf
    parameters: int = 1 << 30
    nodes: int = MOST_GROWN

    def allow(self, graph: Graph) -> bool:
        """Whether a network is within them, with the largest of its kernels in all of it: its parent's, which what
        has grown will have."""
        try:
            whole = with_kernel(graph, max(sizes)) if len(sizes := kernels(graph)) > 1 else graph
        except ValidationError:  # larger than any may be
            return False
        small = len(whole.nodes) <= self.nodes and whole.parameters <= self.parameters
        return small and (math.isinf(self.training_flops) or honest(whole).training <= self.training_flops)


class Proposal(NamedTuple):
    """A candidate: from which trial, by which operations, the network they make of it, and its upper bound for people
    to read."""

    parent: int
    operations: tuple[Operation, ...]
    graph: Graph
    bound: float


class _Waiting(NamedTuple):
    """In the queue: the lowest first, so by the negative of its value; then by when it came."""

    priority: float
    order: int
    parent: int
    operations: tuple[Operation, ...]
    graph: Graph


def proposals(
    finished: Sequence[Finished],
    seed: int,
    taken: Sequence[Graph] = (),
    limits: Limits = Limits(),  # noqa: B008 (immutable)
    kinds: Sequence[type[Operation]] = KINDS,
    known: Container[Descriptor] = frozenset(),
) -> list[Proposal]:
    """Networks that are neither among the finished nor taken nor known, the best first.

    The same arguments give the same proposals.

    Args:
        finished: at least one; the surrogate rests on them.
        taken: networks that are being trained or were given out.
        kinds: of operations that may be made.
        known: others that are not to be proposed.
    """
    with threadpool_limits(1, "blas"):  # small matrices, beside a training that wants the cores
        found = _annealed(finished, random.Random(seed), taken, limits, kinds, known)  # noqa: S311 (not for secrets)
    best = dict[Descriptor, Proposal]()
    for proposal in sorted(found, key=lambda each: -each.bound):
        best.setdefault(Descriptor.of(proposal.graph), proposal)
    return list(best.values())


def _annealed(
    finished: Sequence[Finished],
    chance: random.Random,
    taken: Sequence[Graph],
    limits: Limits,
    kinds: Sequence[type[Operation]],
    known: Container[Descriptor],
) -> list[Proposal]:
    """All candidates that the annealing has valued."""
    seen = [Descriptor.of(graph) for graph in (*(trial.graph for trial in finished), *taken)]
    accuracies = [trial.accuracy for trial in finished]
    guess = sum(accuracies) / len(accuracies)
    surrogate = Surrogate(seen, [*accuracies, *(guess for _ in taken)])
    queue = [_Waiting(-each.accuracy, order, each.id, (), each.graph) for order, each in enumerate(finished)]
    heapq.heapify(queue)
    found, best = list[Proposal](), -math.inf
    temperature, order, own = HOTTEST, len(queue), set(seen)

    def taken_up(network: Descriptor) -> bool:
        return network in own or network in known

    while queue and temperature > COLDEST:
        first = heapq.heappop(queue)
        above = -first.priority - best
        temperature *= COOLING
        if chance.random() > math.exp(min(above / (temperature / COOLING), 0.0)):
            continue
        for operations, graph, bound in _valued(first, surrogate, taken_up, limits, kinds, chance):
            heapq.heappush(queue, _Waiting(-bound, order, first.parent, operations, graph))
            order += 1
            best = max(best, bound)
            found.append(Proposal(first.parent, operations, graph, bound))
    return found


def _valued(
    parent: _Waiting,
    surrogate: Surrogate,
    known: Callable[[Descriptor], bool],
    limits: Limits,
    kinds: Sequence[type[Operation]],
    chance: random.Random,
) -> list[tuple[tuple[Operation, ...], Graph, float]]:
    """Neighbours of a network with their upper bounds, without those that are known."""
    grown = (random_growth(parent.graph, chance, kinds, attempts=1) for _ in range(ATTEMPTS))
    legal = ((each[0], each[1], Descriptor.of(each[1])) for each in grown if each and limits.allow(each[1]))
    found = list(islice((each for each in legal if not known(each[2])), NEIGHBOURS))
    if not found:
        return []
    bounds = surrogate.bounds([descriptor for _, _, descriptor in found])
    return [
        ((*parent.operations, operation), graph, float(bound))
        for (operation, graph, _), bound in zip(found, bounds, strict=True)
    ]
