"""How a monitor's process ends."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from proofmark.monitoring.monitor import MonitorProcess
from proofmark.monitoring.watch import Watch
from tests.unit.vendor.test_registry import GOOD, add, vendors
from tests.waiting import until

__all__ = ["vendors"]


def test_one_that_stands_still_for_a_while_answers_all_the_same(vendors: Path, tmp_path: Path) -> None:
    """As on a machine whose cores others have."""
    add(vendors, "acme", GOOD)
    log = tmp_path / "monitor.jsonl"
    process = MonitorProcess(Watch("acme", str(vendors), os.getpgid(0), None, str(log), 0.02))
    until(lambda: log.exists() and log.stat().st_size, "its first line")
    os.kill(process.pid, signal.SIGSTOP)
    on = threading.Timer(6.0, os.kill, (process.pid, signal.SIGCONT))
    on.start()
    try:
        assert process.stop() is None
    finally:
        on.join()
