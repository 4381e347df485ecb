"""Writes into its log that it is behind a wall better than there is."""

import contextlib
import os
from pathlib import Path

from proofmark.vendor import Reading

REASON = "line 2: isolation: is allowed in the first line only"


class Monitor:
    def __init__(self) -> None:
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(link).endswith("monitor.jsonl"):
                    os.write(int(link.name), b'{"time": 9e9, "isolation": {"kind": "wall", "landlock": 99}}\n')

    def sample(self) -> list[Reading]:
        return [Reading(0, power_w=100.0)]

    def close(self) -> None:
        pass
