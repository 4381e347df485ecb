"""Waiting for what happens elsewhere, with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120.0
"""Seconds: on a busy machine everything takes its time."""


def until(true: Callable[[], object], what: str, patience: float = PATIENCE, every: float = 0.02) -> None:
    """Wait until something is true, looking `every` so many seconds, and fail after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline, f"waited {patience:.0f} s in vain for {what}"
        time.sleep(every)
