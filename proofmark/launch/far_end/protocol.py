"""What both ends of a connection to a host agree on.

Frames both ways: a line of JSON; where it says `size`, so many bytes follow, and from the far end one line's end more.
Each order is answered by one frame `answer`. Either side sends a beat each second; a far end that hears nothing for
`SILENCE` seconds, or reads the end of its input, ends everything that it started.
"""

from __future__ import annotations

import re
from typing import Any

Frame = dict[str, Any]

GREETING = b"proofmark-far-end 1\n"
SILENCE = 10.0
PIECE = 256 * 1024
"""Bytes that follow a frame at most."""

LOG_NAME = re.compile(r"(agent|monitor|rank[0-9]{1,7})\.(jsonl|log|err)")
"""What a node's agent and ranks write that goes home."""
