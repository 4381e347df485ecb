"""Who computes beside this process."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from harness.crowd import Crowd


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_what_this_process_computes_is_no_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # a share of one core
    alone = Crowd()
    spin(1)
    quiet = alone.share()
    crowd = Crowd()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        time.sleep(1)
        busy = crowd.share()
        other.kill()
    assert busy > quiet + 0.3
