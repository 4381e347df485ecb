"""What can befall a training from outside its ranks: interrupts, a full disk, a neighbour, a failing monitor."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import House, clean


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name)
def test_an_end_of_the_session_ends_the_ranks(house: House, number: signal.Signals) -> None:
    session = house.start("--vendor", "cpu", "-k", "1x2", suite="training", trouble="tiny.rank1.step20=hang")
    house.wait_for_trouble(session)
    os.kill(session.pid, number)
    ran = house.end(session)
    assert house.becomes_empty()
    if number is signal.SIGKILL:
        return
    assert ran.code == 2, ran.output
    record = ran.training("1x2")
    assert record.interrupted == "round 1" and record.runs[0].losses
    assert record.verdict is not None and record.verdict.reasons == ("interrupted in round 1",)
    assert (ran.run_dir / "report.html").exists()
    clean(ran)


def test_a_killed_agent_takes_its_ranks_along(house: House) -> None:
    session = house.start("--vendor", "cpu", "-k", "1x2", suite="training", trouble="tiny.rank1.step20=hang")
    house.wait_for_trouble(session)
    agent = house.agent()
    agent.kill()
    ran = house.end(session)
    assert house.becomes_empty()
    assert ran.code == 17 and ran.training("1x2").verdict is not None, ran.output
    assert "the agent died of signal 9 (SIGKILL)" in ran.output and "torchrun failed" not in ran.output


def test_paths_with_spaces_quotes_and_dollars(tmp_path: Path) -> None:
    house = House(tmp_path / "a 'house' of \"$HOME\"; touch x")
    ran = house.run("-k", "1x2", vendor="cpu", suite="training")
    assert ran.code == 0, ran.output


def test_two_sessions_at_once(house: House) -> None:
    sessions = [
        house.start("--vendor", "cpu", "-k", "1x2", "--results-dir", f"results{n}", suite="training") for n in range(2)
    ]
    for number, session in enumerate(sessions):
        ran = house.end(session, results=f"results{number}")
        assert ran.code == 0, ran.output


def test_a_full_disk_is_named(house: House, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    options = ("--vendor", "cpu", "-k", "1x1", "--set", "learning_rate=0.002", "--set", "log_freq=1")  # a long log
    session = house.start(*options, suite="training", preexec_fn=limit)
    ran = house.end(session)
    assert ran.code not in (0, 1), ran.output
    assert "rank 0: OSError: [Errno 2" in ran.output and "rank0.jsonl" in ran.output, "its own event log is full"
    assert house.becomes_empty()
    clean(ran)


@pytest.mark.parametrize(
    "mood, kind, expected",
    [
        ("good", "PASS", "J/point"),
        ("dies", "PASS", " with code 7; its errors are in monitor.err"),
        ("hangs", "PASS", "the monitor did not answer and was killed"),
        ("throttles", "AMBIGUOUS", "a device was throttled while it was timed"),
        ("shares", "AMBIGUOUS", "other processes were on a device while it was timed: 1"),
    ],
)
def test_a_monitor_loses_no_result(
    house: House, monkeypatch: pytest.MonkeyPatch, mood: str, kind: str, expected: str
) -> None:
    monkeypatch.setenv("FAKE_MONITOR", mood)
    if mood not in ("dies", "hangs"):
        monkeypatch.setenv("FAKE_WATCHED", "yes")
    ran = house.run("-k", "1x1", "--monitor-interval", "0.05", suite="training", trouble="tiny.pause=0.1")
    record = ran.training("1x1")
    assert record.verdict is not None and str(record.verdict.kind) == kind, ran.output
    assert expected in " ".join(ran.output.split()), ran.output
    assert record.runs[0].converged
