"""A process that ends as the interpreter would have it, all but its modules."""

from __future__ import annotations

import subprocess
import sys

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
