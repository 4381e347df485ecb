"""What a case's process may tell of, and what of its time must fit the session's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proofmark.inference.case_log import SESSIONS_OWN, CaseLog
from proofmark.inference.outcome.collect import collect
from proofmark.inference.outcome.event_types import CASE_EVENTS
from proofmark.inference.outcome.record import RunRecord
from proofmark.inference.outside import GRACE, LONGER, timed_outside
from proofmark.inference.timing.timing import ROOM, SEED_BYTES, TIME_BYTES
from proofmark.record.events.log import Event, read_events
from proofmark.record.integrity.chain import changes
from proofmark.record.parts import Verdict, VerdictKind
from tests.unit.inference.test_collect import a_round, good_events


@pytest.fixture
def log(tmp_path: Path) -> CaseLog:
    return CaseLog(tmp_path / "events.jsonl")


def test_an_event_is_written_when_it_is_heard_of(log: CaseLog) -> None:
    log.take({"event": "flops", "counted": 1e9})
    (event,) = read_events(log.path)
    assert (event["event"], event["counted"]) == ("flops", 1e9) and event["clock"] > 0
    assert changes(log.path, log.seal) == []


@pytest.mark.parametrize("kind", sorted(SESSIONS_OWN))
def test_what_only_the_session_can_tell(log: CaseLog, kind: str) -> None:
    assert kind in CASE_EVENTS.kinds
    with pytest.raises(ValueError, match=f"{kind} is not an event of a case's process"):
        log.take({"event": kind, "step": "init"})


@pytest.mark.parametrize(
    "event, expected",
    [
        ({}, "None is not an event"),
        ({"event": "applause"}, "applause is not an event"),
        ({"event": ["round"]}, "is not an event"),
        ({"event": "flops"}, "flops: counted"),
        ({"event": "flops", "counted": "many"}, "flops: counted"),
        ({"event": "flops", "counted": float("inf")}, "not JSON"),
        ({"event": "flops", "counted": 1, "clock": 1}, "flops with a clock of its own"),
        ({"event": "flops", "counted": 1, "time": 1.0}, "flops with a time of its own"),
        ({"event": "flops", "counted": 1, "previous": "0"}, "flops with a previous of its own"),
        ({"event": "round", **a_round("engine", 1), "items": 1 << 70}, "larger than 64 bits"),
    ],
)
def test_what_is_no_event_is_not_written(log: CaseLog, event: Event, expected: str) -> None:
    with pytest.raises(ValueError, match=expected) as caught:
        log.take(event)
    assert len(str(caught.value).splitlines()) == 1 and log.path.read_bytes() == b""


@pytest.mark.parametrize("batches, passes", [(500_000, 100), (699_000, 1), (195_000, 195_000)])
def test_a_round_of_very_many_batches_is_read_as_it_was_written(log: CaseLog, batches: int, passes: int) -> None:
    """As many as a round may have, each as long to write as can be."""
    assert batches * TIME_BYTES + passes * SEED_BYTES <= ROOM
    most = {"batch_ns": [9_999_999] * batches, "seeds": [(1 << 62) - 1] * passes, "passes": passes}
    log.take({"event": "round", **a_round("engine", 1), **most, "fresh": [batches - 1] * 256})
    (event,) = read_events(log.path, CASE_EVENTS)
    assert len(event["batch_ns"]) == batches and changes(log.path, log.seal) == []


def test_what_nobody_could_read_again_is_not_written(log: CaseLog) -> None:
    with pytest.raises(ValueError, match="round of 9 MiB: a line of the log has 8 at most"):
        log.take({"event": "round", **a_round("engine", 1), "batch_ns": [9_999_999] * (1 << 20)})
    assert log.path.read_bytes() == b""


def session(log: CaseLog) -> None:
    """A whole run that passes."""
    for kind, fields in good_events():
        if kind in SESSIONS_OWN:
            log.write(kind, **fields)
        else:
            log.take({"event": kind, **fields})


def verdict(record: RunRecord) -> Verdict:
    assert record.verdict is not None
    return record.verdict


def test_a_log_as_the_session_wrote_it_passes(log: CaseLog) -> None:
    session(log)
    record = collect(log.path, seal=log.seal)
    assert verdict(record).kind is VerdictKind.PASS and record.log == log.seal and record.changed == ()


def slower(lines: list[str]) -> list[str]:
    return [line.replace("[10000000,10000000,10000000]", "[1000000,1000000,1000000]") for line in lines]


def longer(lines: list[str]) -> list[str]:
    return [*lines, *[line for line in lines if '"event":"round"' in line] * 33]


@pytest.mark.parametrize("change", [slower, longer], ids=["edited", "appended"])
def test_rounds_that_somebody_else_wrote_are_an_error(log: CaseLog, change: Callable[[list[str]], list[str]]) -> None:
    session(log)
    log.path.write_text("".join(change(log.path.read_text().splitlines(keepends=True))))
    found = verdict(collect(log.path, seal=log.seal))
    assert found.kind is VerdictKind.ERROR
    assert all(reason.startswith("the event log was changed by somebody else") for reason in found.reasons)


def rounds(*seconds: tuple[float, float]) -> tuple[list[Event], list[Event], list[Event]]:
    """Rounds that took so long outside, and inside."""
    begun: list[Event] = []
    over: list[Event] = []
    ended: list[Event] = []
    clock = 0
    for number, (outside, inside) in enumerate(seconds, 1):
        begun.append({"of": "engine", "number": number, "clock": clock})
        clock += int(outside * 1e9)
        over.append({**begun[-1], "clock": clock})
        clock += int(9e9)  # what gave way to fresh batches is answered, and nobody times that
        ended.append({"of": "engine", "number": number, "attempt": 0, "clock": clock, "whole_ns": int(inside * 1e9)})
    return begun, over, ended


@pytest.mark.parametrize(
    "seconds, passed",
    [
        ([(1.01, 1.0)] * 3, True),
        ([(10.0, 1.0)] * 3, False),
        ([(10.0, 1.0), (9.0, 1.0), (1.3, 1.0)], True),
        ([(LONGER + GRACE + 0.01, 1.0)] * 3, False),
        ([(LONGER + GRACE - 0.01, 1.0)] * 3, True),
        ([(0.2, 0.001)] * 3, True),
        ([(1.0, 0.0)], False),
    ],
)
def test_time_passes_outside_too(seconds: list[tuple[float, float]], passed: bool) -> None:
    (check,) = timed_outside(*rounds(*seconds))
    assert check.passed is passed and check.name == "keeps the session's time"


def test_the_referees_own_work_in_a_round_is_time_too() -> None:
    begun, over, ended = rounds((2.0, 1.0))
    (without,) = timed_outside(begun, over, ended)
    (check,) = timed_outside(begun, over, [{**ended[0], "spent_ns": int(0.9e9)}])
    assert not without.passed and check.passed


def test_rounds_that_nobody_heard_begin_are_held_to_nothing() -> None:
    begun, over, ended = rounds((1.0, 1.0))
    assert list(timed_outside([], over, ended)) == [] == list(timed_outside(begun, [], ended))
    assert list(timed_outside([{**begun[0], "number": 2}], over, ended)) == []
    (check,) = timed_outside([{**begun[0], "clock": -int(9e9)}, *begun], over, ended)
    assert check.passed, "of a round that was run again the last beginning counts"


def test_a_clock_that_runs_slow_is_no_pass(log: CaseLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the engine's rounds takes the session a second, and 40 ms by its own word."""
    clock = 0
    events: list[tuple[str, dict[str, Any]]] = []
    for kind, fields in good_events():
        if kind == "round" and fields["of"] == "engine":
            heard = {"of": "engine", "number": fields["number"]}
            events += [("round_begin", heard), ("round_end", heard)]
        events.append((kind, fields))
    with log.path.open("a") as stream:
        for kind, fields in events:
            clock += 10**9 if kind == "round_end" else 1000
            stream.write(json.dumps({"event": kind, "time": 1.79e9, "clock": clock, **fields}) + "\n")
    found = verdict(collect(log.path))
    assert found.kind is VerdictKind.FAIL_HONESTY
    assert "its rounds took longer by the session's clock than by that of the case's process" in found.reasons[0]
