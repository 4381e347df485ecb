"""Says all the time what it is asked next, each time something else."""

import contextlib
import itertools
import os

REASON = "gave more than 64 steps"

for descriptor in range(3, 1024):
    with contextlib.suppress(OSError):
        for number in itertools.count():
            os.write(descriptor, b'{"asking": "step %d"}\n' % number)
