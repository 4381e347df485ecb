"""How FlagPerf's logs are opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def open_log(path: Path) -> BinaryIO:
    """A log for reading, be it a file or a pipe. A pipe that nobody writes into is empty, and keeps no reader waiting.

    Raises:
        OSError: it is not there, not ours to read, or a folder.
    """
    stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    os.set_blocking(stream.fileno(), True)
    return stream
