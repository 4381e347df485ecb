"""Removes a folder when the process that made it is gone, whichever way that went: `python -I -S keeper.py FOLDER`.

It waits for the end of its standard input. What still runs in the folder is ending too, and may write meanwhile.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "proofmark-gate-"
PATIENCE = 60.0
"""Seconds for which it tries."""


@contextlib.contextmanager
def kept_folder() -> Iterator[Path]:
    """A folder that is gone afterwards, also if this process is killed.

    Raises:
        OSError: it can't be made.
    """
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        keeper.communicate()


def main(folder: str) -> None:
    """Wait, then remove until nobody makes it anew."""
    sys.stdin.buffer.read()
    deadline, gone = time.monotonic() + PATIENCE, 0
    while gone < 3 and time.monotonic() < deadline:
        gone = gone + 1 if not Path(folder).exists() else 0
        shutil.rmtree(folder, ignore_errors=True)
        if gone < 3 and Path(folder).parent.exists():
            time.sleep(0.02 if gone else 0.2)


if __name__ == "__main__":
    main(sys.argv[1])
