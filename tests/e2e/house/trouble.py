"""Trouble on order, for the tests: `TROUBLE="case.place=what, ..."` says which, where and what.

The file `$TROUBLE_MARK` appears when the first of it begins, so that a test knows when to strike; sleep comes once.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def at(case: str, place: str) -> None:
    """Do what is ordered for `place` of `case`; '*' is every case."""
    orders = dict(entry.strip().split("=") for entry in os.environ.get("TROUBLE", "").split(",") if entry.strip())
    what = orders.get(f"{case}.{place}") or orders.get(f"*.{place}")
    if what is None:
        return
    mark = Path(os.environ["TROUBLE_MARK"])
    if what == "sleep" and mark.exists():
        return
    mark.write_text(place)
    if what == "sleep":
        time.sleep(120)
    elif what == "exit":
        os._exit(0)
    elif what == "raise":
        raise RuntimeError(f"trouble in {place}\nand a second line")
    else:
        os.kill(os.getpid(), signal.Signals[what])
        time.sleep(5)
