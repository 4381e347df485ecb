"""What a rank and its feeder say to each other over a pair of sockets, a message at a time.

Batches never cross here: they lie in slots of shared memory.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from proofmark.record.parts import Identity

HELLO, SLOT, LAID, FAILED = b"hslf"
"""The first byte of what the feeder says: which data it has (JSON; its bell comes along, where it has one), a new slot,
a batch in one, why there is no more (text)."""

SAMPLE, BEGIN, TAKEN = b"abt"
"""Of what the rank says: that it wants one sample, from where it trains, and that it takes the next batch."""

REQUEST = ord("r")
"""That it wants a pass over batches of its choice: how many samples each has, and their numbers, follow in messages of
their own, as unsigned integers of four bytes."""

LONGEST = 1 << 16
"""Bytes of a message."""

SLOT_FORM = struct.Struct("<BxxxIQ")
"""Number and bytes; its descriptor comes along."""

LAID_FORM = struct.Struct("<B?xxIQ")
"""Whether to ring when it is taken, the slot, and a bit for each tensor whose channels lie last; the layout follows."""

BEGIN_FORM = struct.Struct("<BxxxIQ")
"""Epoch, and global batch in it."""

REQUEST_FORM = struct.Struct("<BxxxIII")
"""Epoch, batches, and samples of them all."""

TAKEN_FORM = struct.Struct("<Bxxx")
"""The numbers of slots that the rank is done with follow."""

NUMBER = struct.Struct("<I")


def hello(identity: Identity, items: int) -> bytes:
    """The first message of all."""
    return bytes([HELLO]) + json.dumps([identity.model_dump(mode="json"), items]).encode()


def channels_first(tensors: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], int]:
    """Images whose channels lie last as they lie, the others as they are; and a bit for each that is such."""
    import torch

    last = [
        each.dim() == 4 and not each.is_contiguous() and each.is_contiguous(memory_format=torch.channels_last)
        for each in tensors
    ]
    turned = [each.permute(0, 2, 3, 1) if is_last else each for is_last, each in zip(last, tensors, strict=True)]
    return turned, sum(1 << number for number, is_last in enumerate(last) if is_last)


def channels_last(tensors: Sequence[torch.Tensor], last: int) -> list[torch.Tensor]:
    """What `channels_first` was given."""
    return [each.permute(0, 3, 1, 2) if last >> number & 1 else each for number, each in enumerate(tensors)]
