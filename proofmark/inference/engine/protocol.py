"""What a referee and an engine's process say to each other over a pair of sockets, a message at a time.

Calls and answers have a fixed form, read in a microsecond; all else is JSON. Tensors never cross here: they lie in
slots of shared memory, and a message says where and in what form.
"""

from __future__ import annotations

import functools
import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

LONGEST = 1 << 17
"""Bytes of a message."""

ORDER, TOLD, SLOT, MAPPED, CALL, ANSWER, LARGER, GO_ON = b"otsmcalg"
"""The first byte of each: something to do and what came of it; a slot and that it is there; a call, its answer or that
this needs a larger slot, and the call's going on."""

SLOT_FORM = struct.Struct("<BxxxIQ")
"""Number and bytes; its descriptor comes along."""

MAPPED_FORM = struct.Struct("<BxxxI")
CALL_FORM = struct.Struct("<BxxxIIIQ")
"""The slot of the inputs, that for the answer, bytes of the layout that follows, and the call's secret number: nobody
answers a call that was not made."""

ANSWER_FORM = struct.Struct("<B7xQd")
"""The call's number and foo_time; the layout follows."""

LARGER_FORM = struct.Struct("<B7xQQ")
"""The call's number, and the bytes that its answer needs."""

GO_ON_FORM = struct.Struct("<BxxxIQ")
"""The slot for the answer, and the call's number."""

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

    @property
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
    parts = []
    for tensor in tensors:
        name, shape = str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)
        if name not in DTYPES:
            raise ValueError(f"a tensor of type {name}; expected one of {', '.join(DTYPES)}")
        if len(shape) > MOST_DIMENSIONS:
            raise ValueError(f"a tensor of {len(shape)} dimensions; expected {MOST_DIMENSIONS} at most")
        parts.append(struct.pack(f"<BB{len(shape)}Q", DTYPES.index(name), len(shape), *shape))
    return b"".join(parts)


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


def as_json(kind: int, content: Any) -> bytes:
    """A message in JSON.

    Raises:
        ValueError: it is too long.
    """
    message = bytes([kind]) + json.dumps(content).encode()
    if len(message) > LONGEST:
        raise ValueError(f"a message of {len(message)} bytes; expected {LONGEST} at most")
    return message
