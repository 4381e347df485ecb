"""How much of this machine's cores other processes take."""

from __future__ import annotations

import contextlib
import os
import time

import psutil

IDLE = {"idle", "iowait", "guest", "guest_nice"}
"""Kinds of a core's time that nobody computes in, or that are counted among another kind."""


class Crowd:
    """All that computes beside this process and its descendants, from now on."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._others = _others()

    def share(self) -> float:
        """Of all cores, 0 to 1; also what a host takes of a virtual machine, where it says so."""
        elapsed = (time.monotonic() - self._begun) * (os.cpu_count() or 1)
        return min(1.0, max(0.0, (_others() - self._others) / elapsed)) if elapsed else 0.0


def _others() -> float:
    """Seconds since the machine was started."""
    everybody = sum(seconds for kind, seconds in psutil.cpu_times()._asdict().items() if kind not in IDLE)
    return float(everybody) - _ours()


def _ours() -> float:
    """Of this process, its descendants, and those that they have waited for: none is lost when it is waited for."""
    seconds = sum(os.times()[:4])
    for descendant in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # gone just now
            seconds += sum(descendant.cpu_times()[:4])
    return seconds
