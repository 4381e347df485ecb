"""`python -m tests.standstills SECONDS COMMAND...`: a command, while any of its processes stand still now and then.

A machine that is busy does the same to a test, once in thousands of times. SEED=N draws the same again, as far as the
processes are the same.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import psutil

EVERY = 0.15
"""Seconds between two draws."""

SHARE = 0.1
"""Of the processes that are stopped at a draw."""

SHORTEST = 0.05
"""Seconds."""


class Standstills:
    """Those of a process's descendants, and of what these have left without a parent."""

    def __init__(self, leader: int, longest: float, chance: random.Random) -> None:
        """Of `leader`'s, which itself goes on, for up to `longest` seconds each."""
        self._leader, self._longest, self._chance = psutil.Process(leader), longest, chance
        self._known = {self._leader}
        self._stopped = dict[psutil.Process, float]()

    def draw(self) -> None:
        """Stop some that run, and let go on whose time is over."""
        now = time.monotonic()
        self.end(now)
        for process in list(self._known):
            with contextlib.suppress(psutil.Error):
                self._known.update(process.children(recursive=True))
        self._known = {process for process in self._known if process.is_running()}
        for process in self._known - {self._leader} - self._stopped.keys():
            with contextlib.suppress(psutil.Error):
                if self._chance.random() < SHARE and process.status() != psutil.STATUS_STOPPED:
                    process.send_signal(signal.SIGSTOP)
                    self._stopped[process] = now + self._chance.uniform(SHORTEST, self._longest)

    def end(self, now: float = float("inf")) -> None:
        """Let those go on whose time is over at `now`."""
        for process in [process for process, until in self._stopped.items() if until <= now]:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGCONT)
            del self._stopped[process]


def main() -> int:
    """The command's exit code."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1_000_000)))
    print(f"SEED={seed}", flush=True)
    with subprocess.Popen(sys.argv[2:]) as running:
        standstills = Standstills(running.pid, float(sys.argv[1]), random.Random(seed))
        try:
            while running.poll() is None:
                standstills.draw()
                time.sleep(EVERY)
        finally:
            standstills.end()
    return running.returncode


if __name__ == "__main__":
    sys.exit(main())
