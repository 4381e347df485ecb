"""Trouble on order, for the tests: `TROUBLE="case.place=what, ..."` says which, where and what.

The file `$TROUBLE_MARK` appears when the first of it begins, so that a test knows when to strike; sleep comes once.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from pathlib import Path

_calls = itertools.count(1)
"""How often a place was reached at which to hang: `hang20` does at the twentieth time."""


def ordered(case: str, place: str) -> str | None:
    """What is ordered for `place` of `case`; '*' is every case."""
    orders = dict(entry.strip().split("=") for entry in os.environ.get("TROUBLE", "").split(",") if entry.strip())
    return orders.get(f"{case}.{place}") or orders.get(f"*.{place}")


def at(case: str, place: str) -> None:
    """Do what is ordered for `place` of `case`."""
    what = ordered(case, place)
    if what is None:
        return
    if what.startswith("hang") and next(_calls) < int(what.removeprefix("hang") or 0):
        return
    mark = Path(os.environ["TROUBLE_MARK"])
    if what == "sleep" and mark.exists():
        return
    mark.write_text(place)
    if what == "sleep":
        time.sleep(120)
    elif what == "flood":
        for _ in range(512):
            os.write(1, b"x" * 65536)
        os.write(2, b"\nlast words\n")
    elif what.startswith("hang"):
        time.sleep(600)
    elif what.startswith("exit"):
        os._exit(int(what.removeprefix("exit") or 0))
    elif what == "memory":
        raise MemoryError("cannot allocate 1 TiB")
    elif what == "raise":
        raise RuntimeError(f"trouble in {place}\nand a second line")
    elif what in signal.Signals.__members__:
        os.kill(os.getpid(), signal.Signals[what])
        time.sleep(5)
