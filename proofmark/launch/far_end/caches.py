"""Having a machine's kernel forget what it read from disks, so that a run reads its data anew."""

from __future__ import annotations

import os
from pathlib import Path

DROP_CACHES = "/proc/sys/vm/drop_caches"


def may_drop_caches() -> bool:
    """Whether this user may drop the kernel's caches."""
    return os.access(DROP_CACHES, os.W_OK)


def drop_caches() -> None:
    """Drop the kernel's caches, once all that is still to be written is on disk.

    Raises:
        OSError: only root may; or there is no such kernel.
    """
    os.sync()
    Path(DROP_CACHES).write_text("3")
