"""Closing what is open, but not what is needed."""

from __future__ import annotations

import subprocess
import sys

CLOSES = """
import os
from proofmark.process.descriptors import close_all_but
kept, other = os.open("/dev/null", os.O_RDONLY), os.open("/dev/null", os.O_RDONLY)
os.dup2(other, 700)
close_all_but((0, 1, 2, kept))
print(sorted(map(int, os.listdir("/proc/self/fd")))[:-1] == [0, 1, 2, kept])
"""


def test_all_is_closed_but_what_is_kept() -> None:
    ran = subprocess.run([sys.executable, "-c", CLOSES], capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n"
