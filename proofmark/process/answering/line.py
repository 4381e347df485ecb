"""A message as a line of JSON, on its way to another process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any


def write_line(descriptor: int, message: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> None:
    """Write a message as a line, the whole of it, however many pieces a pipe or a file takes it in. `default` makes of
    what JSON has not something that it has.

    Raises:
        OSError: nobody reads, or the disk is full or gone.
    """
    line = memoryview((json.dumps(message, default=default) + "\n").encode())
    while line:
        line = line[os.write(descriptor, line) :]
