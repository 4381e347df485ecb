"""Trouble on order, for the tests: `TROUBLE="case.place=what, ..."` says which, where and what.

The file `$TROUBLE_MARK` appears when the first of it begins, so that a test knows when to strike; sleep comes once, and
`held` lasts until the file `released` is beside it.
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
    released = mark.with_name("released")
    if what == "held" and released.exists():
        return
    mark.write_text(place)
    if what == "held":
        while not released.exists():
            time.sleep(0.02)
    elif what == "sleep":
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


def watched(run: str) -> None:
    """Where a test asks for it, wait until a run's monitor has taken a sample that it began later than now: on a busy
    machine the run could be over before."""
    if not os.environ.get("FAKE_WATCHED"):
        return
    log = Path(os.environ["HOUSE"], "results/latest", run, "monitor.jsonl")
    begun, deadline = _lines(log), time.monotonic() + 120
    while _lines(log) < begun + 2:  # the first of them may be of a sample taken before
        assert time.monotonic() < deadline, f"{log}: no more than {begun} lines"
        time.sleep(0.01)


def _lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0
