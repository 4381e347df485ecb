"""What an operation makes of an architecture, and which operations there are. Weights: see `inherit`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import get_args

from pydantic import ValidationError

from proofmark.automl.graph import Graph
from proofmark.automl.morphism.deeper import deepened, places_to_deepen
from proofmark.automl.morphism.operations import AddSkip, ConcatSkip, Deeper, IllegalOperation, Operation, Wider
from proofmark.automl.morphism.skip import places_to_skip, skipped
from proofmark.automl.morphism.wider import places_to_widen, widened

KINDS: tuple[type[Operation], ...] = get_args(get_args(Operation)[0])

_PLACES: dict[type[Operation], Callable[[Graph], Sequence[Operation]]] = {
    Deeper: places_to_deepen,
    Wider: places_to_widen,
    AddSkip: lambda graph: places_to_skip(graph, AddSkip),
    ConcatSkip: lambda graph: places_to_skip(graph, ConcatSkip),
}


def grown(graph: Graph, *operations: Operation) -> Graph:
    """The architecture after some operations.

    Raises:
        IllegalOperation: one can't be done there, or makes a graph that is too large.
    """
    for operation in operations:
        try:
            graph = _grown(graph, operation)
        except ValidationError as error:
            message = error.errors(include_url=False, include_context=False)[0]["msg"].removeprefix("Value error, ")
            raise IllegalOperation(f"the graph would not be legal: {'; '.join(message.splitlines())}") from None
    return graph


def places(graph: Graph, kind: type[Operation]) -> Sequence[Operation]:
    """The operations of a kind that may be possible: what only `grown` sees is not looked at."""
    return _PLACES[kind](graph)


def legal_operations(graph: Graph) -> list[Operation]:
    """All that `grown` takes: costly for large graphs, where `random_growth` is not."""
    return [each for kind in KINDS for each in places(graph, kind) if _is_legal(graph, each)]


def random_growth(
    graph: Graph, chance: random.Random, kinds: Sequence[type[Operation]] = KINDS, attempts: int = 16
) -> tuple[Operation, Graph] | None:
    """An operation, its kind and then its place drawn evenly, and its child; None if `attempts` were all illegal."""
    for _ in range(attempts):
        found = places(graph, chance.choice(kinds))
        if found:
            operation = chance.choice(found)
            try:
                return operation, grown(graph, operation)
            except IllegalOperation:
                continue
    return None


def _grown(graph: Graph, operation: Operation) -> Graph:
    match operation:
        case Deeper():
            return deepened(graph, operation)
        case Wider():
            return widened(graph, operation)
        case AddSkip() | ConcatSkip():
            return skipped(graph, operation)


def _is_legal(graph: Graph, operation: Operation) -> bool:
    try:
        grown(graph, operation)
    except IllegalOperation:
        return False
    return True
