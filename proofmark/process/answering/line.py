"""A message as a line of JSON, on its way to another process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any


def write_line(descriptor: int, message: Mapping[str, Any]) -> None:
    """Write a message as a line, the whole of it, however many pieces a pipe or a file takes it in.

    Raises:
        OSError: nobody reads, or the disk is full or gone.
    """
    line = memoryview((json.dumps(message) + "\n").encode())
    while line:
        line = line[os.write(descriptor, line) :]
