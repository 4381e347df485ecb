"""The wall clock is a label: whoever sets it changes no duration."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofmark.process import wall_clock
from proofmark.record.events.log import EventLog, read_events, seconds_between

ROOT = str(Path(wall_clock.__file__).parents[1])
SHOWS_NOW = "from proofmark.process.wall_clock import now; print(now())"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.lists(st.integers(-(10**18), 10**18), min_size=2, max_size=5))
def test_events_are_in_order_however_the_clock_is_set(tmp_path: Path, settings_of_it: list[int]) -> None:
    path = tmp_path / "events.jsonl"
    path.unlink(missing_ok=True)
    log = EventLog(path)
    with pytest.MonkeyPatch.context() as patch:
        for nanoseconds in settings_of_it:
            patch.setattr(time, "time_ns", lambda ns=nanoseconds: ns)
            patch.setattr(time, "time", lambda ns=nanoseconds: ns / 1e9)
            log.write("x")
    events = list(read_events(path))
    times = [event["time"] for event in events]
    assert times == sorted(times) and times[-1] - times[0] < 3600
    assert seconds_between(events[0], events[-1]) >= 0 == seconds_between(events[-1], events[0])


def now_elsewhere(**environment: str) -> float:
    """What a process shows that is started with a session's reading of the clock."""
    ran = subprocess.run(
        [sys.executable, "-c", SHOWS_NOW],
        env={**os.environ, "PYTHONPATH": ROOT, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(ran.stdout)


@pytest.fixture
def epoch() -> str:
    """What this process tells those that it starts: an hour less than the clock shows."""
    boot, _, reading = os.environ[wall_clock.EPOCH].rpartition(" ")
    return f"{boot} {int(reading) - 3600 * 10**9}"


def test_processes_of_a_session_count_from_the_same_reading(epoch: str) -> None:
    before = wall_clock.now() - 3600
    assert before < now_elsewhere(**{wall_clock.EPOCH: epoch}) < wall_clock.now() - 3600


@pytest.mark.parametrize("spoilt", ["", "another boot 17", "17", "{boot} x"])
def test_another_machines_reading_is_none(spoilt: str) -> None:
    boot = os.environ[wall_clock.EPOCH].rpartition(" ")[0]
    assert abs(now_elsewhere(**{wall_clock.EPOCH: spoilt.format(boot=boot)}) - time.time()) < 600
