"""What a process of others' code leaves in a directory of its own, once it has ended.

Folders may lie there deeper than a path may be long or calls may nest, and forbid to be looked into: all is reached by
descriptors. A part of the far end too, so that it needs nothing but Python.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

LEVELS, LETTERS = 32, 2048
"""How many folders lie within each other, and how long their names are together, where all can be reached by paths."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def lay_open(directory: Path) -> None:
    """Have all there looked into and written by its owner, whatever its maker allowed, and reached by paths: folders
    that lie deeper are removed."""
    with contextlib.suppress(OSError), _opened(str(directory)) as folder:
        _lay_open(folder, LEVELS, LETTERS)


def remove(directory: Path) -> None:
    """Remove it and all that lies there, as far as that can be done; a link is left where it is."""
    with contextlib.suppress(OSError):
        with _opened(str(directory)) as folder:
            while _clear(folder, folder):
                pass
        directory.rmdir()


def _lay_open(folder: int, levels: int, letters: int) -> None:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for name in names:
        left = letters - len(os.fsencode(name))
        with contextlib.suppress(OSError):
            with _opened(name, folder) as within:
                if reached := levels > 0 and left > 0:
                    _lay_open(within, levels - 1, left)
                else:
                    while _clear(within, within):
                        pass
            if not reached:
                os.rmdir(name, dir_fd=folder)


def _clear(folder: int, top: int, levels: int = LEVELS) -> bool:
    """Remove all below a folder. What lies too deep is brought up to the `top`; whether anything was, which is there to
    be removed then."""
    raised = False
    for name in os.listdir(folder):
        if _unlinked(name, folder):
            continue
        with contextlib.suppress(OSError):
            if levels == 0:
                raised |= _brought_up(name, folder, top)
                continue
            with _opened(name, folder) as within:
                raised |= _clear(within, top, levels - 1)
            os.rmdir(name, dir_fd=folder)
    return raised


def _unlinked(name: str, folder: int) -> bool:
    """Whether it was a file, a link or the like, and is gone."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return False
    return True


def _brought_up(name: str, folder: int, top: int) -> bool:
    with _opened(name, folder):  # it is written into: what is above it changes
        os.rename(name, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=top)
    return True


@contextlib.contextmanager
def _opened(name: str, folder: int | None = None) -> Iterator[int]:
    """A folder, and no link to one, which its owner may look into and write. Root may do both anyway, and changes no
    modes: they are another user's."""
    own = os.geteuid() != 0
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        if not own:
            raise
        os.chmod(name, 0o700, dir_fd=folder)  # no link, which would not have been refused so
        descriptor = os.open(name, _FOLDER, dir_fd=folder)
    try:
        if own:
            os.fchmod(descriptor, 0o700)
        yield descriptor
    finally:
        os.close(descriptor)
