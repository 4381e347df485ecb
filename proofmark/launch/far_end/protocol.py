"""What both ends of a connection to a host agree on.

Frames both ways: a line of JSON; where it says `size`, so many bytes follow, and from the far end one line's end more.
Each order is answered by one frame `answer`. Either side sends a heartbeat each second. The near end's say how many
seconds may pass without one: a far end that hears nothing for so long, or reads the end of its input, ends everything
that it started. Until then a link that falls silent loses nothing: what is written waits in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

Frame = dict[str, Any]

GREETING = b"proofmark-far-end 1\n"
SILENCE = 60.0
"""Seconds that the first heartbeat of the near end may take."""

PIECE = 256 * 1024
"""Bytes that follow a frame at most."""

FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}){0,4}")
"""What a file may be called that goes home: a path in its node's folder."""


def is_left(name: str, leaves: Iterable[str]) -> bool:
    """Whether a file is among those that a job says it leaves: names of files or folders, as patterns of the shell."""
    top = name.partition("/")[0]
    return any(fnmatchcase(top, pattern) for pattern in leaves)


def goes_home(name: str, leaves: Iterable[str]) -> bool:
    """Whether a file that a job leaves may be called so, too."""
    return FILE_NAME.fullmatch(name) is not None and is_left(name, leaves)
