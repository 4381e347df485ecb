"""How tensors lie in shared memory: a form of few bytes that a message has, and where each begins."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

DTYPES = "float32 float64 float16 bfloat16 uint8 int8 int16 int32 int64 bool".split()
BYTES = (4, 8, 2, 2, 1, 1, 2, 4, 8, 1)

MOST_TENSORS, MOST_DIMENSIONS, ALIGNMENT = 64, 16, 64

MOST_BYTES = 1 << 40
"""Of all tensors of a layout: beyond that, no number of theirs is believed."""


@dataclass(frozen=True)
class Place:
    """A tensor in a slot: its type by DTYPES, its shape, and where it begins, in bytes."""

    dtype: str
    shape: tuple[int, ...]
    offset: int

    @functools.cached_property
    def numel(self) -> int:
        """How many elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """Where the tensors of a batch or of an answer lie in a slot, and its bytes."""

    places: tuple[Place, ...]
    size: int


def written(tensors: Sequence[torch.Tensor]) -> bytes:
    """The layout of tensors, as a message has it.

    Raises:
        ValueError: there are too many, or one is of a type or a shape that can't cross.
    """
    if len(tensors) > MOST_TENSORS:
        raise ValueError(f"{len(tensors)} tensors; expected {MOST_TENSORS} at most")
    return b"".join([_form(tensor.dtype, tensor.shape) for tensor in tensors])


@functools.lru_cache(maxsize=64)
def _form(dtype: torch.dtype, shape: tuple[int, ...]) -> bytes:
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ValueError(f"a tensor of type {name}; expected one of {', '.join(DTYPES)}")
    if len(shape) > MOST_DIMENSIONS:
        raise ValueError(f"a tensor of {len(shape)} dimensions; expected {MOST_DIMENSIONS} at most")
    return struct.pack(f"<BB{len(shape)}Q", DTYPES.index(name), len(shape), *shape)


@functools.lru_cache(maxsize=64)
def read_layout(text: bytes) -> Layout:
    """The layout that a message has.

    Raises:
        ValueError: it is none; the text is one line.
    """
    places: list[Place] = []
    at = offset = 0
    while at < len(text):
        if at + 2 > len(text) or text[at] >= len(DTYPES) or text[at + 1] > MOST_DIMENSIONS:
            raise ValueError("a tensor of no known form")
        code, dimensions = text[at], text[at + 1]
        if at + 2 + 8 * dimensions > len(text) or len(places) == MOST_TENSORS:
            raise ValueError("a tensor's shape is cut off, or there are too many")
        shape = struct.unpack_from(f"<{dimensions}Q", text, at + 2)
        place = Place(DTYPES[code], shape, offset)
        at += 2 + 8 * dimensions
        offset += -(-place.numel * BYTES[code] // ALIGNMENT) * ALIGNMENT
        if max(offset, math.prod(max(1, size) for size in shape)) > MOST_BYTES:  # of one without elements too
            raise ValueError(f"a tensor of shape {shape}: more than {MOST_BYTES >> 40} TiB")
        places.append(place)
    return Layout(tuple(places), offset)
