"""Floods the pipe on which it is to introduce itself."""

import contextlib
import os

REASON = "more than 1 MiB without an end of line"

for descriptor in range(3, 1024):
    with contextlib.suppress(OSError):
        while True:
            os.write(descriptor, b"x" * 65536)
