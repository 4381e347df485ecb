"""The nodes of a training: each has a monitor of its own, and the record has what all of them saw."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from proofmark.record.events.log import EventLog, read_events
from proofmark.record.parts import Monitoring
from proofmark.training.logs.monitors import NODES, _together
from proofmark.training.logs.seed_run import collect_run
from proofmark.training.node.node_monitor import NodeMonitor
from proofmark.training.outcome.event_types import MONITOR_FAILED
from proofmark.training.spec import TrainingSpec
from proofmark.vendor.hardware.machine import describe_host
from tests.waiting import PATIENCE, until

VENDORS = Path(__file__).parents[3] / "vendors"
BEGUN = 1_790_000_000.0


def spec(directory: Path, vendor: str = "cpu", interval: float | None = 0.05) -> TrainingSpec:
    config = {"host": {"device": None, "isolation": "wall", "cache_dir": str(directory)}}
    return TrainingSpec(("", ""), vendor, str(VENDORS), config, str(directory), (), monitor_interval=interval)


def troubles(directory: Path) -> list[str]:
    return [event["reason"] for event in read_events(directory / "agent.jsonl") if event["event"] == MONITOR_FAILED]


def children() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if "proofmark.monitoring.monitor_main" in command(p)]


def command(process: psutil.Process) -> list[str]:
    """Its command line, which for a moment after the process began is empty, and of one that has ended."""
    found = list[str]()

    def told() -> bool:
        found[:] = process.cmdline()
        return bool(found) or process.status() == psutil.STATUS_ZOMBIE

    with contextlib.suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
        until(told, "its command line")
    return found


def lines(folder: Path) -> int:
    """How many a node's monitor has written."""
    log = folder / "monitor.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def test_a_nodes_monitor_writes_beside_its_agents_log_and_ends_when_told(tmp_path: Path) -> None:
    monitor = NodeMonitor(spec(tmp_path), tmp_path, EventLog(tmp_path / "agent.jsonl"))
    assert len(children()) == 1
    until(lambda: lines(tmp_path), "its first line")  # it is given no time for its imports once it is to end
    threads = [threading.Thread(target=monitor.stop) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not children() and not troubles(tmp_path)
    assert lines(tmp_path) >= 1


def test_without_an_interval_there_is_no_monitor(tmp_path: Path) -> None:
    monitor = NodeMonitor(spec(tmp_path, interval=None), tmp_path, EventLog(tmp_path / "agent.jsonl"))
    assert not children()
    monitor.stop()
    assert not (tmp_path / "monitor.jsonl").exists() and not troubles(tmp_path)


def test_a_monitor_that_cannot_be_started_is_named_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "monitor.err").mkdir()
    monitor = NodeMonitor(spec(tmp_path), tmp_path, EventLog(tmp_path / "agent.jsonl"))
    monitor.stop()
    (message,) = troubles(tmp_path)
    assert message.startswith("the monitor could not be started: ") and "monitor.err" in message


def test_the_agent_runs_no_vendors_code(tmp_path: Path) -> None:
    """A vendor that can't be found is its monitor's to tell."""
    monitor = NodeMonitor(spec(tmp_path, vendor="nobody"), tmp_path, EventLog(tmp_path / "agent.jsonl"))
    until(lambda: lines(tmp_path), "its first line")
    monitor.stop()
    assert not troubles(tmp_path) and "nobody" in (tmp_path / "monitor.jsonl").read_text()


def test_a_monitor_that_dies_is_named(tmp_path: Path) -> None:
    monitor = NodeMonitor(spec(tmp_path), tmp_path, EventLog(tmp_path / "agent.jsonl"))
    (child,) = children()
    child.kill()
    until(lambda: child.status() == psutil.STATUS_ZOMBIE, "its end")
    monitor.stop()
    assert troubles(tmp_path) == ["the monitor ended by itself with code -9; its errors are in monitor.err"]


AGENT = """
import sys, time
from pathlib import Path
from proofmark.record.events.log import EventLog
from proofmark.training.node.node_monitor import NodeMonitor
from proofmark.training.spec import TrainingSpec
folder = Path(sys.argv[1])
monitor = NodeMonitor(TrainingSpec.load(folder / "spec.json"), folder, EventLog(folder / "agent.jsonl"))
print("started", flush=True)
time.sleep(600)
"""


def test_a_monitor_ends_with_an_agent_that_is_killed(tmp_path: Path) -> None:
    spec(tmp_path).save(tmp_path / "spec.json")
    environment = {**os.environ, "PYTHONPATH": str(VENDORS.parent)}
    command = [sys.executable, "-c", AGENT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as agent:
        assert agent.stdout is not None and agent.stdout.readline() == b"started\n"
        (monitor,) = psutil.Process(agent.pid).children()
        agent.kill()
    monitor.wait(PATIENCE)
    assert not monitor.is_running()


TOTALS = {"epoch": 1, "step": 10, "communication": None, "train_seconds": 1.0, "compute_seconds": 1.0}
TOTALS |= dict.fromkeys(("data_seconds", "evaluation_seconds", "checkpoint_seconds"), 0.0)


def node(directory: Path, number: int, power: float | None, late: float = 0.0, **device: Any) -> Path:
    """A node with one rank that trains from second 10 to 20 by its own clock, and a reading of each second."""
    folder = directory / f"noderank{number}"
    folder.mkdir(parents=True)
    begun = BEGUN + late
    write(folder / f"rank{number}.jsonl", [
        {"event": "train_begin", "time": begun + 10, "clock": 0, "steps": 0, "samples": 0},
        {"event": "train_end", "time": begun + 20, "clock": 1, "samples": 100, "converged": True, **TOTALS},
    ])  # fmt: skip
    reading = {"device": 0, "power_w": power, **device}
    write(
        folder / "monitor.jsonl", [{"time": begun + second, "cpu": 0.5, "devices": [reading]} for second in range(31)]
    )
    return folder


def write(path: Path, lines: list[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def seen(directory: Path, nnodes: int) -> Monitoring:
    run, _ = collect_run(directory, {"seed": 0, "time": BEGUN, "clock": 0}, None, nnodes)
    assert run.monitoring is not None
    return run.monitoring


def test_one_node_is_not_numbered(tmp_path: Path) -> None:
    node(tmp_path, 0, 100.0)
    found = seen(tmp_path, 1)
    assert found.energy_joules == pytest.approx(1000.0) and found.energy_per_item == pytest.approx(10.0)
    assert {series.node for series in found.series} == {None}


def test_energy_is_the_sum_over_nodes_each_by_its_own_clock(tmp_path: Path) -> None:
    node(tmp_path, 0, 100.0, throttled=["heat"])
    node(tmp_path, 1, 300.0, late=7200.0, throttled=["power cap"], foreign=[9])
    found = seen(tmp_path, 2)
    assert found.energy_joules == pytest.approx(4000.0) and found.energy_per_item == pytest.approx(40.0)
    assert found.energy_method == "device power, integrated"
    assert (found.throttled, found.foreign_processes) == (("heat", "power cap"), (9,))
    assert found.throttled_share == 1
    assert {(series.node, series.name) for series in found.series} >= {(0, "power"), (1, "power"), (1, "host CPU")}
    assert found.failures == () and found.samples == 62


@pytest.mark.parametrize("shares, expected", [((None, None), None), ((0.2, None), 0.2), ((0.2, 0.4), 0.4)])
def test_what_no_node_knows_of_throttling_is_unknown(shares: tuple[float | None, ...], expected: float | None) -> None:
    seen = {node: Monitoring(samples=1, window=None, throttled_share=share) for node, share in enumerate(shares)}
    found = _together(seen, 10)
    assert found and found.throttled_share == expected


@pytest.mark.parametrize("least, most, seconds", [(9.8, 10.2, 10.0), (18.0, 18.4, 18.0)], ids=["honest", "says less"])
def test_energy_is_of_all_the_time_that_the_agent_saw(
    tmp_path: Path, least: float, most: float, seconds: float
) -> None:
    """Whatever moments a rank gives for its beginning and its end."""
    folder = node(tmp_path, 0, 100.0)
    times = {"least": least, "most": most, "to_evaluation": [least, most]}
    end = {"event": "watched", "time": BEGUN + 10 + (10.2 if seconds == 10.0 else 18.2), "clock": 0, **times}
    write(folder / "agent.jsonl", [end])
    assert seen(tmp_path, 1).energy_joules == pytest.approx(100.0 * seconds, abs=25)


@pytest.mark.parametrize("unread", ["no power", "no log", "rubbish"])
def test_energy_is_unknown_where_one_nodes_is(tmp_path: Path, unread: str) -> None:
    node(tmp_path, 0, 100.0)
    folder = node(tmp_path, 1, None if unread == "no power" else 100.0)
    if unread == "no log":
        (folder / "monitor.jsonl").unlink()
    elif unread == "rubbish":
        (folder / "monitor.jsonl").write_bytes(b"\xff\x00rubbish\n")
    found = seen(tmp_path, 2)
    assert found.energy_joules is None and found.energy_per_item is None and found.energy_method is None
    expected = {"no log": ("node 1: it left no monitor's log",)}
    expected["rubbish"] = ("node 1: 1 lines of the monitor's log are not samples",)
    assert tuple(failure.partition(" (")[0] for failure in found.failures) == expected.get(unread, ())


def test_what_an_agent_says_of_its_monitor_is_in_the_record(tmp_path: Path) -> None:
    node(tmp_path, 0, 100.0)
    EventLog(node(tmp_path, 1, 100.0) / "agent.jsonl").write(MONITOR_FAILED, reason="it burnt down")
    assert seen(tmp_path, 2).failures == ("node 1: it burnt down",)


def test_nodes_say_what_they_are(tmp_path: Path) -> None:
    log = EventLog(node(tmp_path, 1, 100.0) / "agent.jsonl")
    host = describe_host()
    log.write("agent_begin", **host.model_dump())
    node(tmp_path, 0, 100.0)
    seen(tmp_path, 2)
    run, ranks = collect_run(tmp_path, {"seed": 0, "time": BEGUN, "clock": 0}, None, 2)
    assert run.nodes == (None, host), "one agent did not begin"
    assert [rank.node for rank in run.ranks] == [log.node for log in ranks] == [0, 1]


def test_of_many_nodes_the_first_ones_readings_are_kept_and_the_energy_of_all(tmp_path: Path) -> None:
    for number in range(NODES + 2):
        node(tmp_path, number, 100.0)
    found = seen(tmp_path, NODES + 2)
    assert {series.node for series in found.series} == set(range(NODES))
    assert found.energy_joules == pytest.approx(1000.0 * (NODES + 2)) and found.failures == ()
