"""Says all the time what it is asked next, so that nobody loses patience."""

import contextlib
import os

REASON = "a step gave a step that was asked before"

for descriptor in range(3, 1024):
    with contextlib.suppress(OSError):
        while True:
            os.write(descriptor, b'{"asking": "a step"}\n')
