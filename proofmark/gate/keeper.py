"""Removes a folder when the process that made it is gone, whichever way that went:
`python -m proofmark.gate.keeper FOLDER MARK`.

It waits for the end of its standard input. Then it ends what carries the mark, which would go on writing into the
folder. What else still runs there is ending too, and may write meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proofmark.process.lifetime import end_marked
from proofmark.process.scratch.own_directory import remove

PREFIX = "proofmark-gate-"
PATIENCE = 60.0
"""Seconds for which it tries."""


@dataclass(frozen=True)
class Kept:
    """A folder, and the mark of processes that end before it goes."""

    folder: Path
    mark: str


@contextlib.contextmanager
def kept_folder() -> Iterator[Kept]:
    """A folder that is gone afterwards, also if this process is killed.

    Raises:
        OSError: it can't be made.
    """
    kept = Kept(Path(tempfile.mkdtemp(prefix=PREFIX)), secrets.token_hex(16))
    keeper = subprocess.Popen(
        [sys.executable, "-P", "-m", "proofmark.gate.keeper", str(kept.folder), kept.mark],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield kept
    finally:
        end_marked(kept.mark)
        remove(kept.folder)
        keeper.communicate()


def main(folder: str, mark: str) -> None:
    """Wait, end what is marked, then remove until nobody makes it anew."""
    sys.stdin.buffer.read()
    if Path(folder).exists():
        end_marked(mark)
    deadline, gone = time.monotonic() + PATIENCE, 0
    while gone < 3 and time.monotonic() < deadline:
        gone = gone + 1 if not Path(folder).exists() else 0
        remove(Path(folder))
        if gone < 3 and Path(folder).parent.exists():
            time.sleep(0.02 if gone else 0.2)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
