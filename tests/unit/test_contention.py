"""Who computes beside this process."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

from proofmark.monitoring import contention
from proofmark.monitoring.contention import ContentionMeter

pytestmark = pytest.mark.quiet

ALONE = """
import os, time
if pid := os.fork():
    print(pid, flush=True)
    os._exit(0)
end = time.monotonic() + 30
while time.monotonic() < end: pass
"""
"""Nobody's child any more."""


@pytest.fixture(autouse=True)
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share is one of one core."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)


def test_a_child_of_this_process_is_none_of_the_others_alive_or_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else computes here: in place of the machine's times stand those of this test's own processes."""

    def of_this_test() -> tuple[float, float]:
        alive = [sum(child.cpu_times()[:2]) for child in psutil.Process().children()]
        return sum(os.times()[:4]) + sum(alive), 0.0

    monkeypatch.setattr(contention, "_machine", of_this_test)
    meter, before = ContentionMeter(os.getpid()), of_this_test()[0]
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    while of_this_test()[0] - before < 1:
        time.sleep(0.1)
    alive = meter.seen().others
    child.kill()
    child.wait()
    assert alive < 0.1 and meter.seen().others < 0.1


def test_others_are() -> None:
    with subprocess.Popen([sys.executable, "-c", ALONE], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        orphan = psutil.Process(int(started.stdout.readline()))
    try:
        meter = ContentionMeter(os.getpid())
        time.sleep(1)
        assert meter.seen().others > 0.5
    finally:
        orphan.kill()
