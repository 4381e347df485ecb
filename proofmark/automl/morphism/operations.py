"""Morphisms as data."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proofmark.automl.network.layers import Name
from proofmark.record.parts import Part


class IllegalOperation(ValueError):
    """A graph doesn't allow an operation; a sentence."""


class Deeper(Part):
    """A residual block of one convolution behind a ReLU: relu(x + norm(conv(x))); the norm's scale begins at 0."""

    kind: Literal["deeper"] = "deeper"
    after: Name


class Wider(Part):
    """Each filter of a convolution a second time, and of all that are added to it; what takes the new ones begins at 0.

    Where a filter's result is added to another's, that filter is doubled too (Chen et al. 2015, Net2Wider, with zeros
    instead of shares).
    """

    kind: Literal["wider"] = "wider"
    conv: Name


class AddSkip(Part):
    """What a ReLU gives is added to a batch norm: norm(conv(x)) with kernel 1; the norm's scale begins at 0."""

    kind: Literal["add_skip"] = "add_skip"
    source: Name
    target: Name


class ConcatSkip(Part):
    """What a ReLU gives is joined to a batch norm; a convolution of kernel 1, at first [I|0], keeps the channels."""

    kind: Literal["concat_skip"] = "concat_skip"
    source: Name
    target: Name


Operation = Annotated[Deeper | Wider | AddSkip | ConcatSkip, Field(discriminator="kind")]
