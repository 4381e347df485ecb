"""How a monitor's process ends."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from proofmark.monitoring import monitor_main
from proofmark.monitoring.monitor import MonitorProcess
from proofmark.monitoring.watch import Watch
from proofmark.vendor import ProcessorPackages
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
    on = threading.Timer(3.0, os.kill, (process.pid, signal.SIGCONT))
    on.start()
    try:
        assert process.stop() is None
    finally:
        on.join()


@pytest.mark.parametrize("processor, joules", [(True, 0.0), (False, None)])
def test_what_the_processor_uses_is_no_cards_energy(
    vendors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processor: bool, joules: float | None
) -> None:
    """Else a card of which nobody reads the power would be said to need next to none."""
    add(vendors, "acme", f"{GOOD}\nvendor.runs_on_processor = {processor}\n")
    monkeypatch.setattr(ProcessorPackages, "found", lambda: ProcessorPackages([]))
    sampler = monitor_main._Sampler(Watch("acme", str(vendors), os.getpgid(0), None, str(tmp_path / "log"), 0.02))
    seen = sampler.sample()
    assert seen["failure"] is None and seen["package_energy_j"] == joules
