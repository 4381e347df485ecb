"""Small file systems, which fill up."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services import missing

MakeDisk = Callable[[int], Path]


@contextmanager
def disk_maker(mounted: Path) -> Iterator[MakeDisk]:
    """What makes a file system of so many KiB there, until the end."""
    mounted.mkdir()

    def make(kib: int) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(mounted)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            missing(f"the right to mount a small file system: {done.stderr.strip()}")
        return mounted

    try:
        yield make
    finally:
        subprocess.run(["umount", str(mounted)], capture_output=True)


def fill(disk: Path) -> None:
    """Leave no byte free."""
    with (disk / "filler").open("wb", buffering=0) as stream:
        try:
            while stream.write(b"x" * 4096):
                pass
        except OSError:
            pass


def nest(top: Path, name: str, depth: int) -> None:
    """Folders within each other, maybe deeper than a path may be long, with a file in each."""
    folder = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=below))
        os.close(folder)
        folder = below
    os.close(folder)
