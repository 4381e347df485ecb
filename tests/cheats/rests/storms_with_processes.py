"""The same by the one timer that each process has (setitimer), of thousands of small ones: no limit counts those."""

import mmap
import os
import struct
import subprocess
import sys
import time
from typing import Any

COUNT, BEGINS, STEP = 4_000, 0.7, 16_000  # of them; seconds until the first, nanoseconds between two on a core
CHILD = f"""
import mmap, os, signal, struct, sys, time
shared, cores = mmap.mmap(int(sys.argv[1]), 8), sorted(os.sched_getaffinity(0))
asked, (told, tell), turn = [os.pipe(), os.pipe()], os.pipe(), 0
signal.signal(signal.SIGALRM, signal.SIG_IGN)  # a timer goes off all the same
signal.setitimer(signal.ITIMER_REAL, 0)
for number in range({COUNT}):
    if os.fork() == 0:
        core, place = number % len(cores), number // len(cores)
        os.sched_setaffinity(0, [cores[core]])  # where a timer is armed, it goes off
        while os.read(asked[turn][0], 1):
            turn = 1 - turn
            (first,) = struct.unpack("q", shared[:8])
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, (first + place * {STEP} - time.monotonic_ns()) / 1e9))
            os.write(tell, b".")
        os._exit(0)
print("ready", flush=True)
for line in sys.stdin:
    os.write(asked[turn][1], bytes({COUNT}))
    turn, left = 1 - turn, {COUNT}
    while left:
        left -= len(os.read(told, left))
    print("armed", flush=True)
"""


class InferModel:
    """Answers twice what it is given."""

    def __init__(self, *given: Any) -> None:
        descriptor = os.memfd_create("when")
        os.ftruncate(descriptor, 8)
        self._when = mmap.mmap(descriptor, 8)
        command = [sys.executable, "-I", "-S", "-c", CHILD, str(descriptor)]
        self._storm = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[descriptor], text=True
        )
        self._said()

    def _said(self) -> None:
        assert self._storm.stdout is not None
        if not self._storm.stdout.readline():
            raise OSError("no timers")

    def __call__(self, inputs: Any) -> Any:
        assert self._storm.stdin is not None
        self._when[:8] = struct.pack("q", time.monotonic_ns() + int(BEGINS * 1e9))
        self._storm.stdin.write("\n")
        self._storm.stdin.flush()
        self._said()
        return [inputs[0] * 2], 0.0
