"""How far one architecture is from another: how many layers and skips would have to change (Jin et al. 2019).

Layers in their order, sums and concatenations left out, are a word: its edit distance to another counts 1 for a layer
more or less, and the mean relative difference of their attributes where two are of one kind. A skip is a sum or a
concatenation with the places it leads from and to; those of two networks are matched so that their differences are
least, and each without a partner counts 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from proofmark.automl.morphism.skip import origin
from proofmark.automl.network.graph import IMAGE, Graph
from proofmark.automl.network.layers import Add, Concat, Convolution, Dense, Dropout, MaxPool, Node

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Word = tuple[str, tuple[float, ...]]
"""A layer's kind and its attributes."""

_AT_ONCE = 256
"""Pairs whose tables are in memory together."""


class Descriptor(NamedTuple):
    """The part of a network on which its distance to others depends.

    Attributes:
        layers: in their order.
        skips: where each leads from and to, as numbers of layers before, and whether it is a concatenation.
    """

    layers: tuple[Word, ...]
    skips: tuple[tuple[int, int, bool], ...]

    @classmethod
    def of(cls, graph: Graph) -> Descriptor:
        """The descriptor of a network."""
        layers, skips = list[Word](), list[tuple[int, int, bool]]()
        places = {IMAGE: 0}
        for node in graph.nodes:
            if isinstance(node, Add | Concat):
                start = min(places[origin(graph, name)] for name in node.inputs)
                end = max(places[name] for name in node.inputs)
                skips.append((start, end, isinstance(node, Concat)))
            else:
                layers.append((node.op, _attributes(node)))
            places[node.name] = len(layers)
        return cls(tuple(layers), tuple(skips))


def distance_matrix(all_of_them: Sequence[Descriptor]) -> Floats:
    """Distances among networks, (n, n): symmetric, 0 on the diagonal."""
    rows, columns = np.triu_indices(len(all_of_them), 1)
    matrix: Floats = np.zeros((len(all_of_them), len(all_of_them)))
    matrix[rows, columns] = matrix[columns, rows] = _of_pairs(all_of_them, all_of_them, rows, columns)
    return matrix


def distances(ones: Sequence[Descriptor], others: Sequence[Descriptor]) -> Floats:
    """Distances from each of `ones` to each of `others`, (ones, others): 0 only where nothing but names differs."""
    shape = (len(ones), len(others))
    rows, columns = (each.ravel() for each in np.indices(shape))
    return _of_pairs(ones, others, rows, columns).reshape(shape)


def _attributes(node: Node) -> tuple[float, ...]:
    match node:
        case Convolution():
            return (node.channels, node.kernel, node.stride)
        case MaxPool():
            return (node.kernel, node.stride)
        case Dense():
            return (node.channels,)
        case Dropout():
            return (node.rate,)
    return ()


def _of_pairs(
    ones: Sequence[Descriptor], others: Sequence[Descriptor], rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> Floats:
    words = sorted({layer for each in (*ones, *others) for layer in each.layers})
    numbers = {word: number for number, word in enumerate(words)}
    change, left, right = _changes(words), _Words(ones, numbers), _Words(others, numbers)
    edits = [
        _edits(left.taken(rows[begin : begin + _AT_ONCE]), right.taken(columns[begin : begin + _AT_ONCE]), change)
        for begin in range(0, len(rows), _AT_ONCE)
    ]
    of_one, of_other = _skips(ones), _skips(others)
    skips = [_skip_distance(of_one[row], of_other[column]) for row, column in zip(rows, columns, strict=True)]
    found: Floats = np.concatenate([np.zeros(0), *edits]) + np.array(skips)
    return found


class _Words:
    """Networks' layers as numbers, (networks, longest), and how many there are of each."""

    def __init__(self, all_of_them: Sequence[Descriptor], numbers: dict[Word, int]) -> None:
        self._lengths = np.array([len(each.layers) for each in all_of_them], dtype=np.int64)
        self._layers = np.zeros((len(all_of_them), int(self._lengths.max(initial=0))), dtype=np.int64)
        for row, each in enumerate(all_of_them):
            self._layers[row, : len(each.layers)] = [numbers[word] for word in each.layers]

    def taken(self, which: NDArray[np.intp]) -> tuple[Integers, Integers]:
        lengths = self._lengths[which]
        return self._layers[which][:, : int(lengths.max())], lengths


def _changes(words: Sequence[Word]) -> Floats:
    """The cost of turning one layer into another: 2, as for removing and inserting one, where kinds differ."""
    kinds = np.array([word[0] for word in words])
    count = np.array([max(len(word[1]), 1) for word in words])
    values = np.zeros((len(words), max((len(word[1]) for word in words), default=0)))
    for row, (_, attributes) in enumerate(words):
        values[row, : len(attributes)] = attributes
    one, other = values[:, None], values[None]
    relative = np.abs(one - other) / np.maximum(np.maximum(one, other), 1e-12)
    costs: Floats = np.where(kinds[:, None] == kinds, relative.sum(2) / count[:, None], 2.0)
    return costs


def _edits(one: tuple[Integers, Integers], other: tuple[Integers, Integers], change: Floats) -> Floats:
    """Edit distances of pairs of words, all tables at once, a row after the other (Wagner & Fischer 1974).

    Along a row, row[j] = min(above[j], row[j - 1] + 1) for each j is one running minimum of above[j] - j.
    """
    (layers, lengths), (others, their_lengths) = one, other
    pairs, width = others.shape
    steps = np.arange(width + 1, dtype=float)
    table = np.broadcast_to(steps, (pairs, width + 1)).copy()
    found = their_lengths.astype(float)  # of a word without layers
    for row in range(layers.shape[1]):
        above = table + 1
        np.minimum(above[:, 1:], table[:, :-1] + change[layers[:, row, None], others], out=above[:, 1:])
        above -= steps
        table = np.minimum.accumulate(above, axis=1, out=above)
        table += steps
        done = np.flatnonzero(lengths == row + 1)
        found[done] = table[done, their_lengths[done]]
    return found


def _skips(all_of_them: Sequence[Descriptor]) -> list[Floats]:
    return [np.array(each.skips, dtype=float).reshape(-1, 3) for each in all_of_them]


def _skip_distance(one: Floats, other: Floats) -> float:
    if not len(one) or not len(other):
        return float(len(one) + len(other))
    places, theirs = one[:, None, :2], other[None, :, :2]
    apart = np.abs(places - theirs).sum(2) / np.maximum(np.maximum(places, theirs).sum(2), 1)
    costs = np.where(one[:, None, 2] == other[None, :, 2], apart, 1.0)
    return float(costs[linear_sum_assignment(costs)].sum()) + abs(len(one) - len(other))
