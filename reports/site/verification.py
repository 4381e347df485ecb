"""What stands between a record and a rank: that somebody has looked whether it is what its session wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

Verify = Callable[[Path], Sequence[str]]
"""Of a run's folder: what is wrong with it, each in a sentence; nothing, where it is verified."""


def not_verified(run_dir: Path) -> Sequence[str]:
    """What is said of a folder that nothing here can verify."""
    return ("not verified: nothing here verifies a result directory",)
