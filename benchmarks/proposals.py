"""`python -m benchmarks.proposals`: what it costs to generate networks as large as ResNet-50.

The original took 63 to 102 s for a network, knowing 2 to 8, on two cores.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from proofmark.automl.distance import Descriptor, distance_matrix
from proofmark.automl.morphism.grow import random_growth
from proofmark.automl.network.seeds import bottleneck_network
from proofmark.automl.proposal import Finished, proposals

NETWORKS, KNOWN = 100, 8

T = TypeVar("T")


def main() -> None:
    """Print seconds, by the clock and of the processor: one proposal after the other, and a matrix of distances."""
    chance = random.Random(0)
    finished = [Finished(0, bottleneck_network(), 0.5)]
    for number in range(1, KNOWN + 1):
        found = _timed(f"a network, {number} known", partial(proposals, finished, number))
        if found:
            finished.append(Finished(number, found[0].graph, 0.5 + chance.random() / 5))
    graphs = [bottleneck_network()]
    while len(graphs) < NETWORKS:
        if step := random_growth(chance.choice(graphs), chance):
            graphs.append(step[1])
    _timed(f"distances among {NETWORKS}", lambda: distance_matrix([Descriptor.of(graph) for graph in graphs]))


def _timed(what: str, measured: Callable[[], T]) -> T:
    began, busy = time.perf_counter(), time.process_time()
    result = measured()
    print(f"{what:24} {time.perf_counter() - began:6.2f} s, {time.process_time() - busy:6.2f} s of a core")
    return result


if __name__ == "__main__":
    main()
