"""Writes a line of many megabytes, and samples of its own, into the log behind the referee's back."""

import contextlib
import os
from pathlib import Path

from proofmark.vendor import Reading

REASON = "lines of the monitor's log are not samples (line 2: "


class Monitor:
    def __init__(self) -> None:
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(link).endswith("monitor.jsonl"):
                    os.write(int(link.name), b"x" * (8 << 20) + b'\n{"time": 9e99, "devices": []}\n')

    def sample(self) -> list[Reading]:
        return [Reading(0, power_w=100.0)]

    def close(self) -> None:
        pass
