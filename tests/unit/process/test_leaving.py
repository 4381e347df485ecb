"""A process that ends as the interpreter would have it, all but its modules."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

LEAVES = """
import atexit, sys
from proofmark.process.lifetime import leave
class Held:
    def __init__(self):
        self.own = self
    def __del__(self):
        print("given back")
Held()
atexit.register(lambda: print("registered"))
leave(3, has_others_objects=sys.argv[1] == "others")
"""


@pytest.mark.parametrize("whose, said", [("others", ["registered", "given back"]), ("own", ["registered"])])
def test_what_others_hold_in_a_cycle_is_given_back(whose: str, said: list[str]) -> None:
    """As a device that a vendor's engine holds, which calls it back."""
    left = subprocess.run([sys.executable, "-c", LEAVES, whose], capture_output=True, text=True, check=False)
    assert (left.returncode, left.stdout.split("\n")[:-1]) == (3, said)


ADOPTS = """
import subprocess, sys
from proofmark.process.lifetime import adopt_orphans, leave
adopt_orphans()
burns = "import os, time\\nwhile time.process_time() < 1: pass\\nprint(os.getpid(), flush=True); time.sleep(60)"
leaves = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
found = subprocess.Popen([sys.executable, "-c", leaves, sys.executable, "-c", burns], stdout=subprocess.PIPE)
print(found.stdout.readline().decode(), end="", flush=True)
found.wait()
leave(0)
"""


def test_orphans_end_with_who_adopts_them_and_are_waited_for() -> None:
    """What they took of the cores is among what it did."""
    adopts = subprocess.Popen([sys.executable, "-c", ADOPTS], stdout=subprocess.PIPE)
    _, status, took = os.wait4(adopts.pid, 0)
    adopts.returncode = os.waitstatus_to_exitcode(status)
    orphan, _ = adopts.communicate()
    assert adopts.returncode == 0 and not psutil.pid_exists(int(orphan))
    assert took.ru_utime + took.ru_stime > 1
