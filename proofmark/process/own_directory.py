"""What a process of others' code leaves in a directory of its own, once it has ended."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def lay_open(directory: Path) -> None:
    """Have every folder there looked into and written by its owner, whatever its maker allowed. Root may do both
    anyway, and changes no modes: another user whose folder it is might lead it elsewhere by a link."""
    if os.geteuid() == 0:
        return
    folders = [str(directory)]
    while folders:
        folder = folders.pop()
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)
            with os.scandir(folder) as entries:
                folders += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def remove(directory: Path) -> None:
    """Remove it and all that lies there, as far as that can be done."""
    lay_open(directory)
    shutil.rmtree(directory, ignore_errors=True)
