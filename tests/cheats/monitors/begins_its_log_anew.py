"""Empties its log, and begins it anew with a wall better than there is."""

import contextlib
import os
from pathlib import Path

from proofmark.vendor import Reading

REASON = "the first line of the monitor's log, which says how it is kept, is not the one with which it began"


class Monitor:
    def __init__(self) -> None:
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(link).endswith("monitor.jsonl"):
                    os.ftruncate(int(link.name), 0)
                    os.write(int(link.name), b'{"time": 1, "isolation": {"kind": "wall", "landlock": 99}}\n')

    def sample(self) -> list[Reading]:
        return [Reading(0, power_w=100.0)]

    def close(self) -> None:
        pass
