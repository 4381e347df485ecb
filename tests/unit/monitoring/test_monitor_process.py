"""When a monitor's process reads, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from proofmark.errors import UsageError
from proofmark.inference.node.processes import ProcessesHere
from proofmark.monitoring import monitor_main
from proofmark.monitoring.monitor import MonitorProcess
from proofmark.monitoring.watch import Watch
from proofmark.vendor import ProcessorPackages
from tests.unit.vendor.test_registry import GOOD, add, vendors
from tests.waiting import until

__all__ = ["vendors"]

COUNTS = f"""{GOOD}
from proofmark.vendor.readings import Reading
class Monitor:
    def sample(self): return [Reading(0, energy_j=JOULES, power_w=5.0)]
    def close(self): pass
vendor.monitor = Monitor
"""


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


def test_one_that_could_not_be_closed_in_runs_none_of_its_vendors_code(
    vendors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can't be found once may be there a moment later: then it would run without the wall that is asked for."""
    add(vendors, "acme", GOOD)
    watch = Watch("acme", str(vendors), os.getpgid(0), None, str(tmp_path / "log"), 0.02, wall=True)

    def of(name: str, directory: Path) -> NoReturn:
        raise UsageError("isolation.yaml: stale file handle")

    monkeypatch.setattr(monitor_main.VendorPlace, "of", of)
    monkeypatch.setattr(monitor_main, "find_vendor", lambda *_: pytest.fail("it is imported"))
    isolation, failure = monitor_main._close_in(watch, ())
    assert isolation.kind == "process" and "isolation.yaml: stale file handle" in isolation.gaps[0]
    seen = monitor_main._Sampler(watch, failure).sample()
    assert "isolation.yaml: stale file handle" in seen["failure"] and seen["devices"] == []


def lines(log: Path) -> list[dict[str, Any]]:
    """Of a monitor's log, but for the first and one that is being written."""
    return [json.loads(line) for line in log.read_bytes().splitlines(keepends=True)[1:] if line.endswith(b"\n")]


def test_counters_are_read_when_that_is_asked_for(vendors: Path, tmp_path: Path) -> None:
    """The power at such a moment would be taken for that of all the time to the next reading."""
    add(vendors, "acme", f"{COUNTS}JOULES = 7.0\n")
    log = tmp_path / "monitor.jsonl"
    process = MonitorProcess(Watch("acme", str(vendors), os.getpgid(0), None, str(log), 3600.0))
    until(lambda: log.exists() and len(lines(log)) == 1, "its first reading")
    process.count()
    until(lambda: len(lines(log)) == 2, "the one that is asked for")
    assert process.stop() is None, "it does not wait for its next turn"
    first, asked, last = lines(log)
    assert [each["devices"][0]["energy_j"] for each in (first, asked, last)] == [7.0, 7.0, 7.0]
    assert [each["devices"][0]["power_w"] for each in (first, asked, last)] == [5.0, None, 5.0]
    assert asked["cpu"] is None and first["time"] <= asked["time"] <= last["time"]


@pytest.mark.parametrize(
    "sensor, what",
    [
        ("power_w=np.float32(251.0)", "power_w is np.float32(251.0)"),
        ("memory_used_bytes=np.int64(7)", "memory_used_bytes is np.int64(7)"),
        ("throttled={'heat'}", "throttled is {'heat'}"),
        ("processes=('4711',)", "processes is ('4711',)"),
        ("processes=(-1,)", "processes is (-1,)"),
        ("processes=7", "processes is 7"),
    ],
)
def test_a_value_that_no_log_takes_is_told_and_ends_nothing(
    vendors: Path, tmp_path: Path, sensor: str, what: str
) -> None:
    reading = f"import numpy as np\n{COUNTS}JOULES = 7.0\n".replace("power_w=5.0", sensor)
    add(vendors, "acme", reading)
    sampler = monitor_main._Sampler(Watch("acme", str(vendors), os.getpgid(0), None, str(tmp_path / "log"), 0.02))
    expected = "expected numbers and text of Python's own; of processes whole numbers"
    for line in (sampler.sample(), sampler.count()):
        assert json.loads(json.dumps(line))["devices"] == []
        assert line["failure"] == f"sample(): device 0: {what}; {expected}"


@pytest.mark.parametrize("joules, counts", [("7.0", True), ("None", False)])
def test_what_counts_no_energy_is_asked_no_oftener(
    vendors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joules: str, counts: bool
) -> None:
    add(vendors, "acme", f"{COUNTS}JOULES = {joules}\n")
    monkeypatch.setattr(ProcessorPackages, "found", lambda: None)
    sampler = monitor_main._Sampler(Watch("acme", str(vendors), os.getpgid(0), None, str(tmp_path / "log"), 0.02))
    sampler.sample()
    assert sampler.counts is counts
    monkeypatch.setattr(monitor_main, "_processor_seconds", iter([0.0, 0.2]).__next__)
    sampler.sample()
    assert not sampler.counts, "so slow a reading would slow what is timed"


def test_it_is_asked_where_a_round_begins_and_ends() -> None:
    """Else of what was counted since the last reading the idle time before a round is given as much as the round."""
    kinds = ("loader", "round_begin", "round", "round_end")
    told: list[dict[str, Any]] = [{"alive": "calls"}, *({"event": {"event": kind}} for kind in kinds)]
    seen: list[Any] = []

    def run(step: str, timeout: float | None, on_progress: Any) -> dict[str, Any]:
        for report in told:
            on_progress(report)
        return {"status": "done"}

    here = ProcessesHere.__new__(ProcessesHere)
    here._timeout = None
    here._worker = SimpleNamespace(run=run)  # type: ignore[assignment]
    here._monitor = SimpleNamespace(count=lambda: seen.append("count"))  # type: ignore[assignment]
    assert here.run("engine_inference", seen.append) == {"status": "done"}
    assert seen == [*told[:2], "count", told[2], told[3], "count", told[4]]
