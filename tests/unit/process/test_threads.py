"""What can wait yields the cores to others, and leaves the thread that waits for it as it is."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from proofmark.process.threads import LATER, in_the_background


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_what_is_done_in_the_background_yields_and_this_thread_does_not() -> None:
    before = niceness()
    assert in_the_background(niceness) == min(19, before + LATER) and niceness() == before


def test_what_fails_in_the_background_fails_here() -> None:
    with pytest.raises(ZeroDivisionError):
        in_the_background(lambda: 1 / 0)
