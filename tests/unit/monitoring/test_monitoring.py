"""What a record says of a monitor's log, torn, rubbish or good."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.automl.trial.main import energy_of
from proofmark.errors import UsageError
from proofmark.monitoring.summary import summarise
from proofmark.monitoring.table import write_tables
from proofmark.record.parts import Monitoring
from proofmark.vendor import monitor_log
from proofmark.vendor.monitor_log import memory_seen, read_samples
from proofmark.wall.isolation import Isolation


def sample(time: float, **device: Any) -> dict[str, Any]:
    reading = {"device": 0, **device}
    return {"time": time, "cpu": 0.5, "memory": 10, "package_energy_j": None, "devices": [reading], "failure": None}


def written(tmp_path: Path, samples: list[dict[str, Any]]) -> Path:
    path = tmp_path / "monitor.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in samples))
    return path


def seen(tmp_path: Path, samples: list[dict[str, Any]], window: tuple[float, float] = (1, 3)) -> Monitoring:
    monitoring = summarise(written(tmp_path, samples), window, 100, [])
    assert monitoring is not None
    return monitoring


class TestEnergy:
    def test_of_a_counter_between_the_ends_of_the_window(self, tmp_path: Path) -> None:
        found = seen(tmp_path, [sample(t, energy_j=1000 + 50 * t, power_w=1) for t in (0.5, 1.5, 2.5, 3.5)])
        assert found.energy_joules == pytest.approx(100)
        assert found.energy_method == "device energy counter"
        assert found.energy_per_item == pytest.approx(1)

    def test_of_the_timed_parts_alone(self, tmp_path: Path) -> None:
        """Between rounds data is loaded, and an engine looked at."""
        samples = [sample(t, energy_j=100.0 * t, power_w=1) for t in range(12)]
        found = summarise(written(tmp_path, samples), (1, 10), 200, [], [(1, 2), (9, 10)])
        assert found is not None and found.energy_joules == pytest.approx(200)
        assert found.energy_per_item == pytest.approx(1) and found.window == (1, 10)
        powered = [sample(t / 4, power_w=100) for t in range(48)]
        found = summarise(written(tmp_path, powered), (1, 10), 200, [], [(1, 2), (9, 10)])
        assert found is not None and found.energy_per_item == pytest.approx(1)
        few = summarise(written(tmp_path, powered[::4]), (1, 10), 200, [], [(1.1, 1.9), (9, 10)])
        assert few is not None and few.energy_joules is None, "no reading within a round"

    def test_of_a_short_round_by_readings_at_its_edges(self, tmp_path: Path) -> None:
        """Between others, a second apart, the device was idle as long as it was busy."""
        regular, edges = [sample(t, energy_j=70.0 * t, power_w=70) for t in (0, 1)], (1.51, 2.61)
        begun, ended = (sample(t, energy_j=105 + 700 * (t - 1.5)) for t in edges)
        samples = [*regular, begun, sample(2, energy_j=455, power_w=700), ended, sample(3, energy_j=903, power_w=70)]
        found = summarise(written(tmp_path, samples), (1.5, 2.6), 100, [], [(1.5, 2.6)])
        assert found is not None and found.energy_joules == pytest.approx(770, rel=0.02)
        assert found.energy_method == "device energy counter"

    def test_of_a_trial_that_began_before_the_first_reading(self, tmp_path: Path) -> None:
        path = written(tmp_path, [sample(t, energy_j=1000 + 50 * t) for t in (1.2, 2.5, 3.5)])
        before = summarise(path, (1, 3), 100, [])
        assert before is not None and before.energy_joules is None
        assert energy_of(tmp_path, (1, 3), True) == {
            "joules": pytest.approx(90),
            "reason": None,
            "method": "device energy counter",
        }
        assert energy_of(tmp_path, (1, 4), True)["joules"] is None, "it ends after the last"
        late = energy_of(tmp_path, (0.9, 3), True)
        assert late["joules"] is None, "a monitor that reads late would say less"
        assert late["reason"] == "nothing read the power from its beginning on"

    def test_of_power_by_trapezia(self, tmp_path: Path) -> None:
        found = seen(tmp_path, [sample(t, power_w=10 * t) for t in (0, 1, 2, 3, 4)])
        assert found.energy_joules == pytest.approx(40)
        assert found.energy_method == "device power, integrated"

    def test_of_the_package_where_no_device_tells(self, tmp_path: Path) -> None:
        samples = [{**sample(t), "package_energy_j": 7.0 * t} for t in (0, 2, 4)]
        found = seen(tmp_path, samples)
        assert found.energy_joules == pytest.approx(14)
        assert found.energy_method == "processor package counter"

    @pytest.mark.parametrize(
        "samples",
        [
            [],
            [sample(2, energy_j=5, power_w=5)],
            [sample(t, energy_j=e) for t, e in ((0, 100), (2, 50), (4, 200))],
            [sample(t, power_w=100) for t in (1.5, 2, 2.5)],
            [sample(t, power_w=None) for t in (0, 1, 2, 3, 4)],
        ],
        ids=["no samples", "one sample", "a counter that fell", "a window that sticks out", "no sensor"],
    )
    def test_is_null_rather_than_wrong(self, tmp_path: Path, samples: list[dict[str, Any]]) -> None:
        found = seen(tmp_path, samples)
        assert found.energy_joules is None and found.energy_method is None and found.energy_per_item is None

    def test_a_counter_that_fell_elsewhere_is_one_all_the_same(self, tmp_path: Path) -> None:
        before = [sample(t, energy_j=e) for t, e in ((-1, 900), (0.5, 100), (3.5, 250))]
        assert seen(tmp_path, before).energy_joules == pytest.approx(100)
        after = [sample(t, energy_j=e) for t, e in ((0.5, 100), (3.5, 250), (5, 3))]
        assert seen(tmp_path, after).energy_joules == pytest.approx(100)

    def test_of_two_devices_is_their_sum(self, tmp_path: Path) -> None:
        samples = [sample(t, energy_j=t) for t in (0.0, 2.0, 4.0)]
        for each in samples:
            each["devices"].append({"device": 1, "energy_j": 10 * each["time"]})
        assert seen(tmp_path, samples).energy_joules == pytest.approx(22)


def test_only_what_happened_in_the_window_counts(tmp_path: Path) -> None:
    samples = [sample(0, throttled=["heat"], foreign=[7]), sample(2, throttled=[], foreign=[]), sample(4, foreign=[8])]
    found = seen(tmp_path, samples)
    assert found.throttled == () and found.foreign_processes == ()
    assert found.throttled_share == 0
    whole = seen(tmp_path, samples, (0, 4))
    assert whole.foreign_processes == (7, 8) and whole.throttled_share == pytest.approx(1 / 3)


def test_readings_at_the_edges_of_rounds_thin_no_share_of_throttled_ones(tmp_path: Path) -> None:
    """Before a round the device is idle, and cool. What they saw is named all the same."""
    edges = [sample(at, throttled=[], foreign=[7]) | {"cpu": None} for at in (1.2, 1.4, 2.2, 2.4)]
    samples = [sample(1, throttled=["heat"]), *edges, sample(3, throttled=[])]
    found = seen(tmp_path, sorted(samples, key=lambda each: each["time"]))
    assert found.throttled_share == 0.5 and found.throttled == ("heat",) and found.foreign_processes == (7,)
    alone = [sample(2, throttled=["heat"]) | {"cpu": None}]
    assert seen(tmp_path, alone).throttled_share is None, "which no verdict takes for none"


def test_rubbish_is_counted_and_named(tmp_path: Path) -> None:
    path = written(tmp_path, [sample(1), sample(2)])
    path.write_bytes(path.read_bytes() + b"\xff\xfe\n[1]\n{}\n" + b'{"time": 3, "dev')
    found = summarise(path, None, 0, [])
    assert found is not None and found.samples == 2
    (failure,) = found.failures
    assert failure.startswith("4 lines of the monitor's log are not samples (line 3: Invalid JSON: ")


def test_long_series_keep_their_peaks_where_these_tell_and_else_their_means(tmp_path: Path) -> None:
    """A device that waits half of the time is not drawn as one that never does, nor with more power than energy."""
    kept = {"temperature_c": 80.0, "memory_used_bytes": 9, "power_w": 100.0, "utilization": 1.0, "clock_mhz": 900.0}
    idle = dict.fromkeys(kept, 0)
    samples = [sample(t, **(kept if t % 4 < 2 else idle)) for t in range(1200)]
    found = {series.name: series for series in seen(tmp_path, samples).series if series.device == 0}
    assert {name: set(series.values) for name, series in found.items()} == {
        "temperature": {80.0},
        "memory": {9.0},
        "power": {50.0},
        "utilisation": {0.5},
        "clock": {450.0},
    }
    assert found["power"].times == tuple(1.5 + 4 * t for t in range(300))
    assert found["memory"].times == tuple(4.0 * t for t in range(300))


@pytest.mark.parametrize("line", ['{"time": 1}', "x", json.dumps({"time": 1, "devices": [{"device": 0}] * 9})])
def test_a_log_without_end_is_read_no_further(tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_log, "MOST", 50)
    monkeypatch.setattr(monitor_log, "FURTHEST", 50)
    path = tmp_path / "monitor.jsonl"
    path.write_text(f"{line}\n" * 1000)
    samples, rubbish = read_samples(path)
    assert sum(1 + len(sample.devices) for sample in samples) + rubbish.lines <= 52
    assert rubbish.lines == 52 or "it is left out with what follows" in rubbish.first


def test_what_lies_beyond_the_largest_log_is_said_to_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, [sample(t) for t in range(20)])
    size = path.stat().st_size
    for largest, left_out in ((size, 0), (size // 2, 1)):
        monkeypatch.setattr(monitor_log, "LARGEST", largest)
        samples, rubbish = read_samples(path)
        assert rubbish.lines == left_out and (len(samples) < 20) == bool(left_out)
    assert re.fullmatch(rf"line \d+: what follows is left out: of {size // 2:,} bytes; .*", rubbish.first)


def test_a_long_log_is_thinned_evenly_and_seen_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end counts as much as its beginning, and so does a single sample that is not kept."""
    monkeypatch.setattr(monitor_log, "MOST", 50)
    first = {"time": 0, "isolation": Isolation.none("not asked for").model_dump(mode="json")}
    lines = [sample(t, energy_j=5 * t, throttled=["heat"] * (t == 803), foreign=[7] * (t == 805)) for t in range(1001)]
    kept, rubbish = read_samples(written(tmp_path, [first, *lines]))
    times = [each.time for each in kept]
    apart = [b - a for a, b in itertools.pairwise(times[1:-1])]
    assert sum(1 + len(each.devices) for each in kept) <= 52 and not rubbish.lines
    assert kept[0].isolation and set(apart) == {64.0} and times[-1] == 1000
    found = seen(tmp_path, [first, *lines], (10, 990))
    assert found.energy_joules == pytest.approx(4900) and found.samples == 1001
    assert found.throttled == ("heat",) and found.foreign_processes == (7,) and found.isolation
    assert seen(tmp_path, [first, *lines], (10, 800)).throttled == ()


def test_readings_with_very_many_processes_are_held_as_so_many_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor_log, "MOST", 5000)
    kept, _ = read_samples(written(tmp_path, [sample(t, processes=[257] * 10_000) for t in range(100)]))
    assert len(kept) < 6
    kept, _ = read_samples(written(tmp_path, [sample(t, processes=[257] * 8, throttled=["heat"]) for t in range(100)]))
    assert len(kept) == 100


def test_what_a_vendor_says_has_an_end(tmp_path: Path) -> None:
    """Errors and reasons are its own words, and a record has few of them."""
    path = tmp_path / "monitor.jsonl"
    readings = [
        {"device": d, "error": f"{d}\x1b{'x' * 9000}", "throttled": [f"{d}"] * 64, "foreign": [d]} for d in range(99)
    ]
    path.write_text(json.dumps({"time": 1, "devices": readings, "failure": "no\ncard"}) + "\n")
    seen = summarise(path, (0, 2), 1, [])
    assert seen is not None and len(seen.failures) == 18 and max(map(len, seen.failures)) < 400
    assert all(failure.isprintable() for failure in seen.failures)
    assert seen.failures[-1] == "and 83 more complaints of that kind"
    assert len(seen.throttled) == len(seen.foreign_processes) == 16


def test_memory(tmp_path: Path) -> None:
    samples = [sample(t, memory_used_bytes=t, memory_total_bytes=9) for t in (1, 5, 3)]
    assert memory_seen(written(tmp_path, samples)) == (5, 9)
    assert memory_seen(written(tmp_path, [sample(1)])) == (None, None), "nobody read the memory"


@pytest.mark.parametrize(
    "content, found",
    [
        (None, "no such file"),
        ("", "it is empty"),
        ("timestamp, utilization.gpu [%]\n2026/01/01, 3\n", "none of its 2 lines is a sample"),
        (
            '{"event": "round", "time": 1.79e9}\n{"event": "run_begin", "time": 1.79e9, "devices": 2}\n',
            "none of its 2 lines",
        ),
        ('{"event": "run_begin", "time": "yesterday"}\n[1]\n\n', "none of its 3 lines is a sample"),
    ],
)
def test_a_log_of_others_is_refused_by_name(tmp_path: Path, content: str | None, found: str) -> None:
    path = tmp_path / "nvidia-smi.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError) as refused:
        memory_seen(path)
    assert str(refused.value).startswith(f"{path}: no monitor's log: {found}")
    assert str(refused.value).endswith(
        "; expected the monitor.jsonl of a case's folder, of which each line is a sample: a time and devices"
    )
    with pytest.raises(UsageError, match="cannot be read: Is a directory; expected the monitor.jsonl"):
        memory_seen(tmp_path)


def test_no_log_is_no_monitoring(tmp_path: Path) -> None:
    assert summarise(tmp_path / "none", None, 0, []) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("log") / "monitor.jsonl"
    path.write_bytes(json.dumps(sample(1)).encode() + b"\n" + content)
    samples, _ = read_samples(path)
    assert samples
    assert summarise(path, (0, 2), 1, []) is not None


class TestTable:
    def test_each_sample_and_device_is_a_row(self, tmp_path: Path) -> None:
        first = {"time": 1, "isolation": Isolation.none("not asked for").model_dump(mode="json")}
        lines = [first, sample(1, power_w=56.5), {**sample(2), "devices": [], "failure": "gone"}]
        written(tmp_path, lines).open("a").write("rubbish\n")
        write_tables(tmp_path)
        assert (tmp_path / "monitor.csv").read_text().splitlines() == [
            "time,cpu,memory,package_energy_j,device,utilization,power_w,energy_j,temperature_c,memory_used_bytes,"
            "memory_total_bytes,clock_mhz",
            "1.0,0.5,10,,0,,56.5,,,,,",
            "2.0,0.5,10,,,,,,,,,",
        ]

    def test_on_each_node_and_never_through_a_link(self, tmp_path: Path) -> None:
        for node in ("noderank0", "noderank1"):
            (tmp_path / "run" / "round1" / node).mkdir(parents=True)
        outside = written(tmp_path, [sample(1)])
        written(tmp_path / "run" / "round1" / "noderank0", [sample(1)])
        (tmp_path / "run" / "round1" / "noderank1" / "monitor.jsonl").symlink_to(outside)
        laid = tmp_path / "run" / "round1" / "noderank0" / "monitor.csv"
        laid.symlink_to(outside)
        write_tables(tmp_path / "run")
        assert [path.parent.name for path in (tmp_path / "run").rglob("monitor.csv")] == ["noderank0"]
        assert not laid.is_symlink() and outside.read_text().startswith("{"), "what was laid there is replaced"
