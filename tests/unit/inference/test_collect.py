"""From event logs, whole, torn or strange, to records."""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofmark.automl.logs import event_types as searches
from proofmark.inference.outcome.collect import collect
from proofmark.inference.outcome.event_types import CASE_EVENTS
from proofmark.inference.outcome.record import STEPS
from proofmark.inference.outcome.verdict import REQUIRED_CHECKS, TIMED_CHECKS
from proofmark.record.events.log import LONGEST, EventLog, read_events
from proofmark.record.parts import VerdictKind
from proofmark.record.provenance import Chip, Host, Peak
from proofmark.rules.config import EffectiveConfig, HostSettings
from proofmark.rules.legality import Override
from proofmark.training.outcome.event_types import AGENT_EVENTS, SESSION_EVENTS
from proofmark.training.outcome.rank_event_types import RANK_EVENTS
from proofmark.wall.isolation import Isolation

ROOT = Path(__file__).parents[3]

CHIP = Chip(name="chip", peak=Peak(flops_per_second=1e9, precision="fp32", source="sheet"))
CONFIG = EffectiveConfig(
    suite="inference",
    case="net",
    profile="embedded",
    vendor="acme",
    parameters={"metric": "top1", "target": 0.9, "seed": 7, "flops": 1e3, "item": "image"},
    configurations={"repeat": 3, "precision": None, "fp16": False, "compiler": "engine", "batch_size": 40},
    overrides=(Override("batch_size", 1, 40, "--set", "changed"),),
    host=HostSettings(cache_dir="c"),
)


def begin(**changes: Any) -> dict[str, Any]:
    """The first event's fields."""
    facts = {
        "config": CONFIG.as_dict(),
        "compiler": "engine",
        "precision": "fp32",
        "gate": 0.99,
        "problems": [],
        "versions": {"python": "3.11"},
        "host": Host(name="h", system="s", processor="p", cores=2, memory_bytes=1).model_dump(),
        "device": None,
        "chip": CHIP.model_dump(),
    }
    return facts | changes


def a_round(of: str, number: int, **changes: Any) -> dict[str, Any]:
    """A pass over 100 items: 30 ms of compute in 40 ms."""
    return {
        "of": of,
        "number": number,
        "started": 1.79e9 + number,
        "items": 100,
        "whole_ns": 40_000_000,
        "batch_ns": [10_000_000] * 3,
        "evaluation_ns": 1_000_000,
        "accuracy": 0.95 + number / 1000,
        "contention": {"others": 0.0, "stolen": 0.0, "idle": 0.0},
        **changes,
    }


def measured(of: str) -> list[tuple[str, dict[str, Any]]]:
    """All events of one target."""
    return [
        *[("loader", {"of": of, "items": 9000, "seconds": 1.0}) for _ in range(3)],
        ("warmup", {"of": of, "batches": 5, "seconds": 0.1}),
        *[("round", a_round(of, number)) for number in (1, 2, 3)],
        ("memory", {"of": of, "host_peak_bytes": 10, "device_peak_bytes": None, "device_total_bytes": None}),
    ]


def good_events() -> list[tuple[str, dict[str, Any]]]:
    """A whole run that passes."""
    identity = {"sha256": "0" * 64, "items": 100, "origin": None}
    inside: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "data_and_model": [
            ("dataset", {"name": "digits", **identity}),
            ("weights", {"name": "weights", **identity}),
            ("flops", {"counted": 1e3}),
        ],
        "framework_validation": [("framework_precision", {"precision": "fp32"}), *measured("framework")],
        "engine_inference": [
            *measured("engine"),
            *[
                ("check", {"name": name, "passed": True, "figure": 1.0, "bound": 1.1, "meaning": "something"})
                for name in sorted(REQUIRED_CHECKS | TIMED_CHECKS)
            ],
        ],
    }
    events: list[tuple[str, dict[str, Any]]] = [("run_begin", begin())]
    for step in STEPS:
        end = {"step": step, "status": "done", "seconds": 0.5, "reason": None, "kind": None, "detail": None}
        events += [("step_begin", {"step": step}), *inside.get(step, []), ("step_end", end)]
    return events


def written(path: Path, events: list[tuple[str, dict[str, Any]]]) -> Path:
    log = EventLog(path)
    for name, fields in events:
        log.write(name, **fields)
    log.close()
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


@pytest.mark.parametrize("held, kind", [({}, VerdictKind.PASS), ({"framework_held": True}, VerdictKind.ERROR)])
def test_a_run_is_held_to_the_checks_of_its_framework_by_what_it_began_with(
    log: Path, held: dict[str, bool], kind: VerdictKind
) -> None:
    """One of before there were such checks says nothing of them, and is judged as it was."""
    (name, fields), *others = good_events()
    isolation = {"of": "framework", "isolation": Isolation(kind="wall").model_dump(mode="json")}
    verdict = collect(written(log, [(name, {**fields, **held}), ("isolated", isolation), *others])).verdict
    assert verdict is not None and verdict.kind is kind, verdict
    assert not held or verdict.reasons == ("the honesty check 'answers alike when timed (framework)' is missing",)


def test_whole_log(log: Path) -> None:
    record = collect(written(log, good_events()))
    assert record.verdict is not None and record.verdict.kind is VerdictKind.PASS, record.verdict
    assert record.config_hash == CONFIG.hash and record.seed == 7
    assert record.parameters == tuple(CONFIG.parameters) and {*record.parameters} < {*record.config}
    assert [override.key for override in record.overrides] == ["batch_size"]

    assert record.engine is not None
    assert record.engine.whole.value == pytest.approx(2500)
    assert record.engine.core.value == pytest.approx(100 / 0.03)
    assert record.engine.whole.stdev == pytest.approx(0, abs=1e-6)
    assert record.engine.latency_ms["mean"] == pytest.approx(10) and record.engine.latency_batches == 9
    assert record.engine.bound_by == "compute"
    assert record.accuracy.engine == 0.951, "the worst round counts"
    assert record.utilisation.mfu == pytest.approx(1e3 * 100 / 0.03 / 1e9)
    assert record.dataset is not None and record.dataset.name == "digits"


@pytest.mark.parametrize(
    "quick, kind, expected",
    [
        (False, VerdictKind.PASS, ""),
        (True, VerdictKind.FAIL_HONESTY, "inputs that nobody has seen take it longer (2, bound 1.1)"),
    ],
)
def test_an_engine_that_is_quicker_on_the_data_is_no_pass(
    log: Path, quick: bool, kind: VerdictKind, expected: str
) -> None:
    """Whatever its process says of that check."""
    fresh = [0, 4, 5]
    times = [10_000_000 if number in fresh or not quick else 100_000 for number in range(12)]
    changes = {"batch_ns": times, "whole_ns": 250_000_000, "fresh": fresh, "full": 12}
    events = [
        (name, fields | changes if (name, fields.get("of")) == ("round", "engine") else fields)
        for name, fields in good_events()
        if fields.get("name") != "no slower when fresh"
    ]
    verdict = collect(written(log, events)).verdict
    assert verdict is not None and verdict.kind is kind and expected in "\n".join(verdict.reasons), verdict


def test_of_engines_made_again_the_weakest_wall_is_recorded(log: Path) -> None:
    wall, none = Isolation(kind="wall", landlock=7, network="closed"), Isolation.none("no wall")
    isolated = [("isolated", {"of": "engine", "isolation": kept.model_dump()}) for kept in (wall, none, wall)]
    assert collect(written(log, [*good_events(), *isolated])).isolation == {"engine": none}


@pytest.mark.parametrize("begun", [{}, {"begun": 1.79e9 + 4200}], ids=["an older log", "begun"])
def test_a_case_elsewhere_lasts_from_when_it_began_there(log: Path, begun: dict[str, float]) -> None:
    """After an hour in a queue, on a host whose clock is ten minutes ahead. An older log gives what it gave."""
    first, *others = good_events()
    host = {"node": 0, "name": "h", "skew": 600.0, "round_trip": 0.1}
    launched = ("launched", {"hosts": [host], "device": 0, **begun})
    lines = [
        json.dumps({"event": name, "time": 1.79e9 + late, "clock": late * 10**9, **fields})
        for (name, fields), late in zip([first, launched, *others], [0, *range(3600, 9999)], strict=False)
    ]
    log.write_text("\n".join(lines))
    record = collect(log)
    assert record.corrupt_lines == 0 and record.launched
    assert record.seconds == len(others) + (0 if begun else 3600)
    assert record.begun == begun.get("begun") and record.zero == begun.get("begun", record.started)


WHOLE = b"".join(
    json.dumps({"event": name, "time": 1.79e9, "clock": number, **fields}).encode() + b"\n"
    for number, (name, fields) in enumerate(good_events())
)
FIRST = WHOLE.index(b"\n") + 1


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.integers(FIRST, len(WHOLE)))
def test_a_log_cut_anywhere_is_a_record_and_passes_only_whole(log: Path, cut: int) -> None:
    log.write_bytes(WHOLE[:cut])
    record = collect(log)
    assert record.verdict is not None
    passes = record.verdict.kind is VerdictKind.PASS
    assert passes == (cut >= len(WHOLE) - 1), "the last line may lack its end of line"
    assert passes or record.verdict.reasons


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(FIRST, len(WHOLE) - 1), st.binary(min_size=1, max_size=1))
def test_a_damaged_byte_never_ends_in_a_traceback_of_the_reader(log: Path, at: int, byte: bytes) -> None:
    log.write_bytes(WHOLE[:at] + byte + WHOLE[at + 1 :])
    assert sum(1 for _ in read_events(log)) >= WHOLE.count(b"\n") - 2


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_clock_that_is_set_gives_no_negative_seconds(log: Path, data: st.DataObject) -> None:
    events = [json.loads(line) for line in WHOLE.splitlines()]
    for event in events:
        event["time"] = data.draw(st.floats(-2e9, 4e9), "clock")
        event["started"] = event["time"]
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    log.with_name("monitor.jsonl").write_text(json.dumps({"time": data.draw(st.floats(-2e9, 4e9)), "cpu": 0.5}) + "\n")
    record = collect(log)
    assert record.seconds == pytest.approx((len(events) - 1) / 1e9)
    assert record.verdict is not None and record.verdict.kind is VerdictKind.PASS
    assert record.monitoring is not None and record.monitoring.window is not None
    assert record.monitoring.window[0] <= record.monitoring.window[1]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_lost_round_is_no_pass(log: Path, number: int) -> None:
    events = [e for e in good_events() if e[0] != "round" or (e[1]["of"], e[1]["number"]) != ("engine", number)]
    verdict = collect(written(log, events)).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.reasons) == (VerdictKind.ERROR, ("2 of 3 rounds are in the record",))


@pytest.mark.parametrize(
    "name, reason",
    [
        ("loader", "the loader was not measured"),
        ("warmup", None),
        ("memory", None),
        ("flops", "the FLOPs were not counted"),
        ("dataset", "nothing identifies the data set"),
        ("weights", "nothing identifies the weights"),
    ],
)
def test_other_events_may_be_missing(log: Path, name: str, reason: str | None) -> None:
    """Which is no pass where something was to be measured."""
    verdict = collect(written(log, [event for event in good_events() if event[0] != name])).verdict
    assert verdict is not None and verdict.reasons == ((reason,) if reason else ())
    assert verdict.kind is (VerdictKind.ERROR if reason else VerdictKind.PASS)


@pytest.mark.parametrize(
    "changes, kind",
    [
        ({"accuracy": None}, VerdictKind.ERROR),
        ({"accuracy": 0.5}, VerdictKind.FAIL_ACCURACY),
        ({"whole_ns": 20_000_000}, VerdictKind.ERROR),
        ({"whole_ns": 0}, VerdictKind.ERROR),
        ({"batch_ns": []}, VerdictKind.ERROR),
    ],
)
def test_one_bad_round_decides(log: Path, changes: dict[str, Any], kind: VerdictKind) -> None:
    events = good_events()
    for name, fields in events:
        if name == "round" and fields["of"] == "engine" and fields["number"] == 2:
            fields.update(changes)
    verdict = collect(written(log, events)).verdict
    assert verdict is not None and verdict.kind is kind


@pytest.mark.parametrize(
    "loader, evaluation_ns, bound_by", [(1e2, 1, "loader"), (1e9, 1, "compute"), (1e9, 10**9, "evaluation")]
)
def test_bound_by_the_slowest_stage(log: Path, loader: float, evaluation_ns: int, bound_by: str) -> None:
    events = good_events()
    for name, fields in events:
        if name == "loader":
            fields["items"] = int(loader)
        if name == "round":
            fields["evaluation_ns"] = evaluation_ns
    engine = collect(written(log, events)).engine
    assert engine is not None and engine.bound_by == bound_by


def test_throughput_is_all_items_over_all_seconds(log: Path) -> None:
    """One lucky short round must not lift it: the mean of these rates would be 35,000."""
    events = good_events()
    for name, fields in events:
        if name == "round" and fields["of"] == "engine" and fields["number"] == 2:
            fields.update(batch_ns=[1_000_000], whole_ns=2_000_000)
    engine = collect(written(log, events)).engine
    assert engine is not None
    assert engine.core.value == pytest.approx(300 / 0.061)
    assert engine.whole.value == pytest.approx(300 / 0.082)
    assert engine.core.max == pytest.approx(100_000)


def test_stages_within_the_noise_bound_nothing(log: Path) -> None:
    events = good_events()
    for name, fields in events:
        if name == "loader":
            fields.update(items=103, seconds=0.03)
    engine = collect(written(log, events)).engine
    assert engine is not None and engine.loader is not None and engine.loader.stdev == 0
    assert engine.bound_by is None


def test_a_stage_that_was_slower_in_some_rounds_only_bounds_nothing(log: Path) -> None:
    events = good_events()
    loads = iter([20_000, 2_000, 20_000] * 2)
    for name, fields in events:
        if name == "loader":
            fields.update(items=next(loads), seconds=1.0)
    engine = collect(written(log, events)).engine
    assert engine is not None and engine.loader is not None and engine.loader.value > 2 * engine.core.value
    assert engine.bound_by is None


def test_of_a_repeated_measurement_the_second_counts(log: Path) -> None:
    first = [(n, f | ({"batch_ns": [90_000_000]} if n == "round" else {})) for n, f in measured("engine")]
    again = [(n, f | {"attempt": 1}) for n, f in measured("engine") if n in ("loader", "round")]
    events = good_events()
    kept = [(n, f) for n, f in events if (n, f.get("of")) not in (("round", "engine"), ("loader", "engine"))]
    at = kept.index(("warmup", {"of": "engine", "batches": 5, "seconds": 0.1}))
    kept[at:at] = [*first, ("repeated", {"of": "engine", "what": ["the rounds scatter"]}), *again]
    for name, fields in kept:
        if name == "check":
            fields["attempt"] = 1
    engine = collect(written(log, kept)).engine
    assert engine is not None and len(engine.rounds) == 3 and engine.repeated == ("the rounds scatter",)
    assert engine.core.value == pytest.approx(100 / 0.03)
    record = collect(log)
    assert record.verdict is not None and record.verdict.kind is VerdictKind.PASS
    assert record.framework is not None and not record.framework.repeated


def test_checks_of_what_was_not_repeated_stay(log: Path) -> None:
    """A framework on a device is measured once, where its engine is anew: each has the checks of its own last time."""
    (_, fields), *others = good_events()
    isolation = {"of": "framework", "isolation": Isolation(kind="wall").model_dump(mode="json")}
    passed = {"passed": True, "figure": 1.0, "bound": 1.1, "meaning": "something"}
    for kind, check in others:
        if kind == "check":
            check["attempt"] = 1
    wrong = ("check", {"name": "waits for its device", **passed, "passed": False, "attempt": 0})
    held = ("check", {"name": "answers alike when timed (framework)", **passed, "attempt": 0})
    began = ("run_begin", {**fields, "framework_held": True})
    record = collect(written(log, [began, ("isolated", isolation), held, wrong, *others]))
    assert record.verdict is not None and record.verdict.kind is VerdictKind.PASS, record.verdict


@pytest.mark.parametrize(
    "events, expected",
    [
        ([("step_begin", {"step": "audit"})], "step audit failed: it began and never ended"),
        (
            [
                ("step_begin", {"step": "audit"}),
                ("step_end", {"step": "audit", "status": "failed", "seconds": 1.0, "reason": "no such model"}),
            ],
            "step audit failed: no such model",
        ),
        (
            [
                ("step_begin", {"step": "audit"}),
                ("step_end", {"step": "audit", "status": "done", "seconds": 1.0, "reason": None}),
            ],
            None,
        ),
    ],
)
def test_an_audit_that_fails_is_no_pass(log: Path, events: list[Any], expected: str | None) -> None:
    """An engine that compiles the one model which it knows, and no other."""
    *before, begun, ended = good_events()
    verdict = collect(written(log, [*before, *events, begun, ended])).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.reasons) == (VerdictKind.ERROR, (expected,)) if expected else (VerdictKind.PASS, ())


def test_what_the_core_lost_to_the_loader_beside_it(log: Path) -> None:
    events = good_events()
    at = next(i for i, (name, fields) in enumerate(events) if name == "memory" and fields["of"] == "engine")
    events.insert(at, ("alone", {"of": "engine", "items_per_second": 4000.0}))
    record = collect(written(log, events))
    assert record.engine is not None and record.engine.core_lost == pytest.approx(1 - 100 / 0.03 / 4000)
    assert record.framework is not None and record.framework.core_lost is None


@pytest.mark.parametrize(
    "content", [b"", b"{}\n", b'{"event": "step_begin", "time": 1}\n', b'{"event": "run_b', b"[1]\n"]
)
def test_without_a_beginning_there_is_no_record(log: Path, content: bytes) -> None:
    log.write_bytes(content)
    with pytest.raises(ValueError, match="no run_begin event"):
        collect(log)


@pytest.mark.parametrize(
    "kind, field, value",
    [
        ("round", "batch_ns", None),
        ("round", "items", "100"),
        ("round", "whole_ns", -1),
        ("round", "accuracy", float("nan")),
        ("round", "evaluation_ns", 10**400),
        ("warmup", "seconds", [[]]),
        ("check", "passed", {}),
        ("step_end", "status", "perhaps"),
        ("dataset", "sha256", 1),
        ("memory", "host_peak_bytes", 1.5),
        ("step_begin", "time", 1e300),
    ],
)
def test_one_damaged_event_is_named_and_the_rest_is_kept(log: Path, kind: str, field: str, value: Any) -> None:
    optional = field.endswith("_bytes")
    for change in ({field: value}, *[None] * (not optional)):
        events = [json.loads(line) for line in WHOLE.splitlines()]
        number = next(n for n, event in enumerate(events) if event["event"] == kind)
        if change is None:
            del events[number][field]
        else:
            events[number].update(change)
        log.write_text("".join(json.dumps(event) + "\n" for event in events))
        record = collect(log)
        assert record.corrupt_lines == 1 and len(record.damaged) == 1
        assert record.damaged[0].startswith(f"events.jsonl, line {number + 1}: "), record.damaged
        assert record.verdict is not None and record.verdict.kind is VerdictKind.ERROR
        assert kind == "step_end" or any(record.damaged[0] in reason for reason in record.verdict.reasons)
        assert record.engine is not None and len(record.engine.rounds) == 3
        assert record.accuracy.engine == 0.951 and record.checks


def test_a_log_that_has_lost_its_beginning_is_read_with_what_the_run_wrote_there(log: Path) -> None:
    event = json.loads(WHOLE[:FIRST])
    log.write_bytes(b"x" * FIRST + b"\n" + WHOLE[FIRST:])
    record = collect(log, event)
    assert record.case == "net" and record.engine is not None
    assert record.damaged == ("events.jsonl, line 1: not JSON",)
    log.write_bytes(b"")
    assert collect(log, event).engine is None


@pytest.mark.parametrize("part", ["host", "chip"])
def test_what_a_later_version_adds_to_a_part_is_left_out(log: Path, part: str) -> None:
    events = good_events()
    events[0][1][part] = {**events[0][1][part], "of_tomorrow": 1}
    record = collect(written(log, events))
    assert record.verdict is not None and record.verdict.kind is VerdictKind.PASS


def test_a_line_of_any_length_is_read_in_little_memory(log: Path) -> None:
    log.write_bytes(WHOLE + b"x" * (3 * LONGEST) + b"\n" + b"[" * LONGEST + b"\n")
    record = collect(log)
    assert record.corrupt_lines == 2 and record.engine is not None


def test_every_event_that_is_written_has_a_type() -> None:
    of_searches = (searches.SESSION_EVENTS, searches.TRIAL_EVENTS, searches.HANDED_EVENTS)
    readers = (CASE_EVENTS, SESSION_EVENTS, AGENT_EVENTS, RANK_EVENTS, *of_searches)
    known = {kind for reader in readers for kind in reader.kinds}
    for path in (ROOT / "proofmark").rglob("*.py"):
        written = re.findall(r"log\.write\(\s*\"(\w+)\"", path.read_text(encoding="utf-8"))
        assert set(written) <= known, f"{path}: {set(written) - known}"


def test_no_log(log: Path) -> None:
    with pytest.raises(ValueError, match="no run_begin"):
        collect(log)


class TestEventLog:
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
    def test_only_plain_json_is_written(self, log: Path, value: Any) -> None:
        events = EventLog(log)
        with pytest.raises((ValueError, TypeError)):
            events.write("x", value=value)
        events.write("y")
        assert [event["event"] for event in read_events(log)] == ["y"]

    def test_a_write_that_takes_a_part_is_an_error(self, log: Path) -> None:
        class FillingUp:
            def write(self, line: bytes) -> int:
                return len(line) - 1

        events = EventLog(log)
        events._stream = FillingUp()  # type: ignore[assignment]
        with pytest.raises(OSError) as caught:
            events.write("x")
        assert caught.value.errno == errno.ENOSPC

    def test_two_writers_share_a_file(self, log: Path) -> None:
        one, other = EventLog(log), EventLog(log)
        for number in range(50):
            (one if number % 2 else other).write("x", number=number)
        assert [event["number"] for event in read_events(log)] == list(range(50))
