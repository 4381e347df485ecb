"""What a monitor watches, as its process is told."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

ENDING = 15.0
"""Seconds that a monitor gets to end: on a busy machine it may not have begun to sample when it is to."""

REWRITTEN = "the first line of the monitor's log, which says how it is kept, is not the one with which it began"


@dataclass(frozen=True)
class Watch:
    """One case's devices.

    Attributes:
        vendor: whose they are.
        vendors_dir: where vendors are found.
        group: the process group of the case; other groups on a device are foreign.
        devices: those whose readings are kept, or how many of those that the vendor finds usable; None keeps all.
        path: the log that is appended to.
        interval: seconds between samples.
        selected: what --device asked of the vendor.
        wall: whether the monitor puts one on.
        container: how the names of those begin that the case's engines are in, which is the case's secret.
    """

    vendor: str
    vendors_dir: str
    group: int
    devices: Collection[int] | int | None
    path: str
    interval: float
    selected: str | None = None
    wall: bool = True
    container: str | None = None
