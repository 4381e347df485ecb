"""Whatever becomes of a monitor, no result is lost, and it is named."""

from __future__ import annotations

import pytest

from proofmark.record.parts import Monitoring
from tests.e2e.conftest import House
from tests.unit.wall.test_wall import has_landlock

INTERVAL = ("--monitor-interval", "0.05", "--repeat", "15")


def watched(house: House, monkeypatch: pytest.MonkeyPatch, mood: str) -> tuple[str, Monitoring]:
    """The verdict's kind and what the monitor saw, of a run with a monitor in that mood."""
    monkeypatch.setenv("FAKE_MONITOR", mood)
    if mood == "good":
        monkeypatch.setenv("FAKE_WATCHED", "yes")
    ran = house.run(*INTERVAL)
    record = ran.record()
    assert record.engine is not None and record.verdict is not None
    assert record.monitoring is not None
    assert house.becomes_empty()
    for failure in record.monitoring.failures:
        assert failure.split()[0] in ran.output
    return str(record.verdict.kind), record.monitoring


def test_a_good_one(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, seen = watched(house, monkeypatch, "good")
    assert kind == "PASS" and not seen.failures
    assert seen.isolation and (seen.isolation.kind == "wall" or not has_landlock())
    assert {"power", "temperature", "host CPU", "host memory"} <= {series.name for series in seen.series}
    (table,) = house.root.glob("results/2*/inference/tiny/monitor.csv")
    head, *rows = table.read_text().splitlines()
    assert head.startswith("time,cpu") and len(rows) > 2 and all(row.count(",") == head.count(",") for row in rows)


@pytest.mark.parametrize(
    "mood, expected",
    [
        ("raises", "the sensor bus is gone"),
        ("loses", "device 0 could not be read: fell off the bus"),
        ("absent", "no driver library"),
        ("dies", " with code 7; its errors are in monitor.err"),  # by itself, or when it was to end
        ("hangs", "did not answer and was killed"),
    ],
)
def test_a_failing_one_loses_no_result_and_is_named(
    house: House, monkeypatch: pytest.MonkeyPatch, mood: str, expected: str
) -> None:
    kind, seen = watched(house, monkeypatch, mood)
    assert kind == "PASS"
    assert any(expected in failure for failure in seen.failures), seen.failures


@pytest.mark.parametrize("mood", ["babbles", "lies"])
def test_noise_and_nonsense_do_no_harm(house: House, monkeypatch: pytest.MonkeyPatch, mood: str) -> None:
    kind, seen = watched(house, monkeypatch, mood)
    assert kind == "PASS"
    assert ("power" in {series.name for series in seen.series}) == (mood == "babbles")
    assert seen.energy_joules is None or mood == "babbles"


@pytest.mark.parametrize("mood, expected", [("throttles", "heat"), ("shares", "other processes")])
def test_a_disturbed_device_makes_a_result_ambiguous(
    house: House, monkeypatch: pytest.MonkeyPatch, mood: str, expected: str
) -> None:
    monkeypatch.setenv("FAKE_MONITOR", mood)
    monkeypatch.setenv("FAKE_WATCHED", "yes")
    ran = house.run(*INTERVAL)
    assert ran.code == 11, ran.output
    kind, reasons = ran.verdict()
    assert kind == "AMBIGUOUS" and expected in reasons


def test_none_is_asked_for(house: House) -> None:
    ran = house.run("--monitor-interval", "0")
    assert ran.code == 0
    assert ran.record().monitoring is None
