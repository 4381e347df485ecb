"""Waiting for what happens elsewhere, with a limit."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil

PATIENCE = 120.0
"""Seconds: on a busy machine everything takes its time."""


def until(true: Callable[[], object], what: str, patience: float = PATIENCE, every: float = 0.02) -> None:
    """Wait until something is true, looking `every` so many seconds, and fail after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline, f"waited {patience:.0f} s in vain for {what}"
        time.sleep(every)


def name_of(process: psutil.Process) -> str:
    """Its name; none of one that is gone."""
    try:
        return process.name()
    except psutil.Error:
        return ""


def lies(name: str, folder: Path) -> bool:
    """Whether a file of that name lies anywhere in a folder, parts of which may be going meanwhile."""
    return any(name in files for _, _, files in os.walk(folder))
