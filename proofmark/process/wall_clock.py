"""The wall clock as a label: read once in a session, counted on by the monotonic clock, so that to set it moves none.

All processes of a session on one machine count from the same reading.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

EPOCH = "PROOFMARK_EPOCH"
"""The environment variable by which a process tells those that it starts what its machine's clock showed, in ns since
the epoch, when the monotonic clock stood at 0; with the boot that this holds for."""


def now() -> float:
    """Seconds since the epoch, never fewer than at an earlier call."""
    return (_EPOCH_NS + time.perf_counter_ns()) / 1e9


def _epoch() -> int:
    """The epoch of this clock: as the starting process said, if that runs on this machine; else as the clock shows
    now."""
    inherited_boot, _, offset = os.environ.get(EPOCH, "").rpartition(" ")
    if inherited_boot == boot() and offset.isdecimal():
        return int(offset)
    epoch = time.time_ns() - time.perf_counter_ns()
    os.environ[EPOCH] = f"{boot()} {epoch}"
    return epoch


def boot() -> str:
    """What this machine's monotonic clock counts from."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()


_EPOCH_NS = _epoch()  # when this is imported: before any other process can be started that reads a clock
