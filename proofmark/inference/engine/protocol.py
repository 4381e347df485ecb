"""What a referee and an engine's process say to each other over a pair of sockets, a message at a time.

Calls and answers have a fixed form, read in a microsecond; all else is JSON. Tensors never cross here: they lie in
slots of shared memory, and a message says where and in what form.
"""

from __future__ import annotations

import json
import struct
from typing import Any

SOCKET = "/run/proofmark/socket"
"""Where the referee listens, as a process in a container sees that."""

LONGEST = 1 << 17
"""Bytes of a message."""

ORDER, REPLY, SLOT, MAPPED, SOON, CALL, ANSWER, LARGER, GO_ON = b"otsmwcalg"
"""The first byte of each: something to do and what came of it; a slot and that it is there; that a call comes soon; a
call, its answer or that this needs a larger slot, and the call's going on."""

COMING = bytes([SOON])
"""All of a message that says so."""

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


def as_json(kind: int, content: Any) -> bytes:
    """A message in JSON.

    Raises:
        ValueError: it is too long.
    """
    message = bytes([kind]) + json.dumps(content).encode()
    if len(message) > LONGEST:
        raise ValueError(f"a message of {len(message)} bytes; expected {LONGEST} at most")
    return message
