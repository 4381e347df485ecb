"""What an operation makes of an architecture, and which operations there are. Weights: see `inherit`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import get_args

from pydantic import ValidationError

from proofmark.automl.morphism.deeper import deepened, places_to_deepen
from proofmark.automl.morphism.operations import AddSkip, ConcatSkip, Deeper, IllegalOperation, Operation, Wider
from proofmark.automl.morphism.skip import places_to_skip, skipped
from proofmark.automl.morphism.wider import places_to_widen, widened
from proofmark.automl.network.graph import Graph

KINDS: tuple[type[Operation], ...] = get_args(get_args(Operation)[0])

_PLACES: dict[type[Operation], Callable[[Graph], Sequence[tuple[str, ...]]]] = {
    Deeper: places_to_deepen,
    Wider: places_to_widen,
    AddSkip: places_to_skip,
    ConcatSkip: places_to_skip,
}
"""The nodes that an operation of each kind may name; what only `grown` sees is not looked at."""


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


def random_growth(
    graph: Graph, chance: random.Random, kinds: Sequence[type[Operation]] = KINDS, attempts: int = 16
) -> tuple[Operation, Graph] | None:
    """An operation, its kind and then its place drawn evenly, and its child; None if `attempts` were all illegal."""
    for _ in range(attempts):
        kind = chance.choice(kinds)
        if found := _PLACES[kind](graph):
            operation = _at(kind, chance.choice(found))
            try:
                return operation, grown(graph, operation)
            except IllegalOperation:
                continue
    return None


def _at(kind: type[Operation], place: tuple[str, ...]) -> Operation:
    named = [field for field in kind.model_fields if field != "kind"]
    return kind.model_validate(dict(zip(named, place, strict=True)))


def _grown(graph: Graph, operation: Operation) -> Graph:
    match operation:
        case Deeper():
            return deepened(graph, operation)
        case Wider():
            return widened(graph, operation)
        case AddSkip() | ConcatSkip():
            return skipped(graph, operation)
