"""What of a folder may be opened: regular files alone. A link leads elsewhere, a pipe or a device never ends."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from proofmark.folders import walk
from proofmark.record.envelope import RECORD_FILE


def records_in(root: Path) -> Iterator[Path]:
    """Records of runs, wherever they lie below a folder; no link is followed. What lies below one is the run's own, and
    may be of a vendor's making, as beside checkpoints."""
    for folder, names, files in walk(root):
        if RECORD_FILE in files:
            names.clear()
            yield folder / RECORD_FILE


def strange(root: Path) -> Iterator[Path]:
    """Whatever lies below a folder and is neither a file nor a directory; nothing is opened or followed."""
    for folder, names, files in walk(root):
        for path in (folder / name for name in (*names, *files)):
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:  # whoever made it has taken it away
                continue
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                yield path
