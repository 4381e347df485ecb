"""Fills the disk from its own directory, in files that are small enough, and waits for what comes of it."""

import os
import tempfile
import time

REASON = "its import died of signal 9 (SIGKILL): it filled its own directory with more than the 4 GiB that it may keep"

for _ in range(5):
    os.truncate(tempfile.mkstemp()[1], 1 << 30)
time.sleep(60)
