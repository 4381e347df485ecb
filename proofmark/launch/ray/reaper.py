"""Ends what a task has left on its node once the task's process is gone: `python -m proofmark.launch.ray.reaper FOLDER
MARK`, told so by the end of its standard input.

Where its driver is gone, Ray kills the children of a task's process, and then that. In between it may see that its
child has ended, and kill what that has started: the agent, which would have removed the folder, as the process itself
would have a moment later. So this is no child of it, and bears no mark.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from proofmark.launch.far_end.child import carrying, kill_marked
from proofmark.process.scratch.own_directory import remove

BY_ITSELF = 5.0
"""Seconds that an agent has to end by itself: it reads the end of its standard input too."""

REMOVING = 60.0
"""Seconds until the folder is left where it is: a process that dies may still write into it."""

LOOK = 0.1
"""Seconds between two looks."""


def main(folder: Path, mark: str) -> None:
    """Wait for the task's process to be gone; then end all that bears the mark, and remove the folder."""
    if os.fork():
        os._exit(0)  # and so the other one is nobody's child
    os.chdir("/")
    sys.stdin.buffer.read()
    deadline = time.monotonic() + BY_ITSELF
    while carrying(mark) and time.monotonic() < deadline:
        time.sleep(LOOK)
    kill_marked(mark)
    deadline = time.monotonic() + REMOVING
    while folder.exists() and time.monotonic() < deadline:
        remove(folder)
        time.sleep(LOOK)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
