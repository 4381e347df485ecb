"""Says in the introduction's place that it is behind a wall better than there is."""

import contextlib
import os

REASON = "its import gave an invalid answer"

for descriptor in range(3, 1024):
    with contextlib.suppress(OSError):
        os.write(descriptor, b'{"isolation": {"kind": "wall", "landlock": 99, "network": "closed"}}\n')
