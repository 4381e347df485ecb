"""Renaming from one folder into another where Landlock refuses all of that: its first version knows no right to it.

A compiler writes what it has made into a folder for what is not ready, and renames it into its cache.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
from collections.abc import Callable
from typing import Any

FORBIDS = 1
"""The version of Landlock that does."""


def bridge() -> None:
    """Have this process's Python put a copy where it may not rename to, and remove what it was made of."""
    for name in ("rename", "replace"):
        setattr(os, name, _bridged(getattr(os, name)))


def _bridged(rename: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(rename)
    def renamed(source: Any, target: Any, **relative: Any) -> None:
        try:
            rename(source, target, **relative)
        except OSError as error:
            if error.errno != errno.EXDEV or relative or not os.path.isfile(source):
                raise
            draft = f"{os.fsdecode(target)}.{os.getpid()}.draft"
            shutil.copy2(source, draft)
            rename(draft, target)  # within one folder: whoever reads there sees all of it or nothing
            os.unlink(source)

    return renamed
