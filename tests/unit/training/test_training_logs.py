"""The event logs of a training: any length, in bounded memory; damage is counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.errors import StepError
from proofmark.record.events.log import CORRUPT, EventLog, read_events
from proofmark.record.parts import Flops
from proofmark.record.provenance import Chip, Peak
from proofmark.rules.config import EffectiveConfig
from proofmark.training.logs.collect import _damaged_agents, _figures, _of_task, _rounds, _task, _utilisation
from proofmark.training.logs.downsampled import POINTS, Downsampled
from proofmark.training.logs.failure import QUOTED, failure_of
from proofmark.training.logs.gist import gist, raised
from proofmark.training.logs.hosts import contention_of
from proofmark.training.logs.outside import clock_checks, least_seconds, tells_closely
from proofmark.training.logs.ranks.rank_figures import figures_of
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.logs.run_durations import SinceBegin, durations, rates_of
from proofmark.training.logs.seed_run import _of_first, collect_run
from proofmark.training.node.rank_results import leave_results
from proofmark.training.outcome.checks import CLOCK, OUTSIDE, PARAMETERS, PLAN, REPLAYED, SEEDED, SESSION_CLOCK
from proofmark.training.outcome.event_types import EXAMINED, SESSION_EVENTS
from proofmark.training.outcome.examined import Examination
from proofmark.training.outcome.figures import figures
from proofmark.training.outcome.rank_event_types import RANK_EVENTS
from proofmark.training.outcome.record import Failure
from proofmark.training.outcome.verdict import stages
from proofmark.vendor.hardware.processor import too_many_loaders
from tests.training_records import make_run, make_training, passed
from tests.unit.training.test_run_durations import TOTALS

BEGIN = {"event": "round_begin", "seed": 0, "time": 1.0, "clock": 0}
PLAIN = st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN |= st.text(max_size=5)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("ab"), inner), max_leaves=5
)


@given(st.lists(st.integers(0, 5000), max_size=6))
def test_series_are_downsampled_evenly(lengths: list[int]) -> None:
    series: Downsampled[int] = Downsampled()
    total = 0
    for length in lengths:
        series.extend(range(total, total + length))
        total += length
    kept = series.kept()
    assert len(kept) <= 2 * POINTS + 1
    if total:
        assert kept[0] == 0 and kept[-1] == total - 1
        assert len(kept) == total or len(kept) > POINTS
        assert len({later - former for former, later in pairwise(kept[:-1])}) <= 1


@given(fields=st.dictionaries(st.sampled_from("abcde"), VALUES, max_size=3))
def test_what_is_written_comes_back(tmp_path_factory: Any, fields: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    log = EventLog(path)
    log.write("something", **fields)
    log.close()
    (event,) = read_events(path)
    assert event == json.loads(path.read_text(encoding="utf-8"))


@given(st.binary(max_size=200))
def test_rubbish_is_counted(tmp_path_factory: Any, rubbish: bytes) -> None:
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    path.write_bytes(rubbish + b"\n[]\n" + b"[" * 5000 + b"\n")
    assert sum(event["event"] == CORRUPT for event in read_events(path)) >= 2


def events(count: int) -> Iterator[dict[str, Any]]:
    """A rank's log with everything in it that comes more than once."""
    yield {"event": "train_begin", "time": 0.0}
    for step in range(1, count + 1):
        totals = {"time": float(step), "clock": step, "epoch": step, "step": step, "samples": 8 * step}
        totals |= {"train_seconds": float(step), "compute_seconds": float(step)}
        yield {"event": "epoch_begin", "time": step - 1.0, "epoch": step - 1}
        yield {"event": "steps", **totals, "first": step, "losses": [1 / step], "learning_rate": 0.1}
        yield {"event": "evaluation", **totals, "metric": 0.5, "took_seconds": 0.25}
        yield {"event": "checkpoint", "time": float(step), "step": step}
        yield {"event": CORRUPT, "what": "it"}
    yield {"event": "train_end", "time": count + 0.5, "clock": count + 1, "step": count}


def test_a_long_log_is_kept_short() -> None:
    count = 5000
    log = RankLog(0).take(events(count))
    assert log.corrupt == count
    for series in (log.losses, log.notes, log.epochs, log.evaluations, log.checkpoints, log.computed):
        assert POINTS < len(series.kept()) <= 2 * POINTS + 1
    last = log.evaluations.kept()[-1]
    assert (last["samples"], last["time"]) == (8 * count, float(count))
    assert log.epochs.kept()[-1].model_dump() == {"number": count - 1, "began": count - 1.0, "ended": count + 0.5}
    assert log.losses.kept()[0] == (1, 1.0) and log.losses.kept()[-1][0] == count


def test_every_entry_of_a_short_log_is_kept() -> None:
    log = RankLog(0).take(events(7))
    assert [step for step, _ in log.losses.kept()] == list(log.checkpoints.kept()) == list(range(1, 8))


def test_a_hang_of_thousands_is_told_in_a_few_lines(tmp_path: Path) -> None:
    (tmp_path / "noderank0").mkdir()
    for rank in range(100):
        (tmp_path / "noderank0" / f"rank{rank}.log").write_text(f"stack of {rank}\n")
    hang = {"event": "hang", "phase": "compute", "step": 7, "seconds": 30.0}
    stuck = [{"rank": rank, "position": (7, 3, False), **hang} for rank in range(100)]
    waiting = [{"rank": rank, "position": (7, 3, True), **hang} for rank in range(100, 8192)]
    failure = failure_of(tmp_path, (), stuck + waiting, None)
    assert failure is not None
    assert failure.ranks == tuple(range(100))
    assert failure.cause.count("hung in step 7") == QUOTED
    more = f"{100 - QUOTED} more ranks hung there; whether one of them waits for another can't be told"
    assert f"{more}; waiting for it: rank 100, 101" in failure.cause
    assert failure.cause.endswith(f"and {8092 - QUOTED} more")
    assert failure.last_lines.splitlines() == [f"stack of {rank}" for rank in range(QUOTED)]


@pytest.mark.parametrize("ranks, told", [(1, ""), (2, "which of them is at fault can't be told")])
def test_where_all_ranks_wait_it_is_said_that_the_one_at_fault_is_not_known(
    tmp_path: Path, ranks: int, told: str
) -> None:
    """As where one's own device hangs: its rank waits for that as the others do for the exchange."""
    hang = {"event": "hang", "step": 7, "phase": "compute", "seconds": 31.0, "position": [7, 3, True]}
    failure = failure_of(tmp_path, (), [{"rank": rank, **hang} for rank in range(ranks)], None)
    assert failure is not None and failure.ranks == tuple(range(ranks))
    assert failure.cause.startswith("rank 0 hung in step 7, compute, for 31 s") and failure.cause.endswith(told)
    assert ("can't be told" in failure.cause) is bool(told)


@pytest.mark.parametrize("raised, named", [(99.8, (1,)), (100.1, (1,)), (40.0, (0, 1)), (None, (0, 1))])
def test_who_raised_as_its_agent_looked_had_waited_for_who_hung(
    tmp_path: Path, raised: float | None, named: tuple[int, ...]
) -> None:
    """Another node's agent had ended that one by then, before anybody saw that this one waited."""
    hang = {"event": "hang", "step": 7, "phase": "compute", "seconds": 31.0, "position": [7, 3, False], "time": 100.0}
    first = RankLog(0)
    if raised is not None:
        first.last["rank_failed"] = {"event": "rank_failed", "time": raised, "rank": 0, "reason": "Connection closed"}
    failure = failure_of(tmp_path, (first, RankLog(1)), [{"rank": rank, **hang} for rank in range(2)], None)
    assert failure is not None and failure.ranks == named
    assert failure.cause.endswith("waiting for it: rank 0") is (named == (1,))


PYTHON, TORCH = "/usr/lib/python3.12/threading.py", "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py"
RAISED = f"""a word
Traceback (most recent call last):
  File "/house/proofmark/rank.py", line 1, in main
ValueError: before

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/house/proofmark/rank.py", line 2, in main
    step()
    ^^^^^^
  File "/venv/lib/python3.12/site-packages/acme/training.py", line 7, in step
    matmul()
  File "{TORCH}", line 9, in forward
RuntimeError: no kernel
second line of it"""
HUNG = f"""Thread 0x00007f (most recent call first):
  File "{PYTHON}", line 3 in wait
  File "/house/other.py", line 4 in other

Current thread 0x00007e (most recent call first):
  File "{TORCH}", line 5 in forward
  File "/house/vendors/acme.py", line 6 in step
  File "/house/proofmark/rank.py", line 7 in main"""
IDLE = """
Current thread 0x00007d (most recent call first):
  File "/house/proofmark/training/feeding/loading.py", line 8 in load"""
QUEUE = f"""
Thread 0x00007c (most recent call first):
  File "{PYTHON}", line 9 in wait"""


@pytest.mark.parametrize(
    "last_lines, expected",
    [
        (RAISED, ["at /venv/lib/python3.12/site-packages/acme/training.py, line 7, in step"]),
        (HUNG, ["at vendors/acme.py, line 6, in step"]),
        (HUNG + IDLE, ["at vendors/acme.py, line 6, in step"]),  # another process, which waits for it
        (HUNG + QUEUE + IDLE, ["at vendors/acme.py, line 6, in step"]),
        (IDLE, ["at proofmark/training/feeding/loading.py, line 8, in load"]),
        (f'Stack (most recent call first):\n  File "{TORCH}", line 5 in run', [f"at {TORCH}, line 5, in run"]),
        ("one\ntwo\nthree\n\x1b[2J", ["last words: two", "last words: three", "last words: \\x1b[2J"]),
        ("", []),
    ],
)
def test_a_failure_is_told_by_cause_place_and_log(tmp_path: Path, last_lines: str, expected: list[str]) -> None:
    (tmp_path / "round1/noderank1").mkdir(parents=True)
    for name in ("rank1.log", "rank10.log", "agent.log"):
        (tmp_path / "round1/noderank1" / name).touch()
    failure = Failure(ranks=(1,), cause="rank 1: it broke", last_lines=last_lines)
    for seen_from, log in ((Path("/house"), tmp_path / "round1/noderank1"), (tmp_path, "round1/noderank1")):
        lines = gist(failure, tmp_path / "round1", seen_from)
        assert lines[0] == failure.cause and lines[-1] == f"its whole log: {log}/rank1.log"
        assert seen_from == tmp_path or lines[1:-1] == expected
    of_agent = gist(failure.model_copy(update={"ranks": ()}), tmp_path / "round1", tmp_path)
    assert of_agent[-1] == "its whole log: round1/noderank1/agent.log"


def test_what_a_rank_raised_names_its_place_and_its_log(tmp_path: Path) -> None:
    """Below a library's frames: who reads of it can mend what called that."""
    module = tmp_path / "vendors/acme/anvil.py"
    found: dict[str, Any] = {}
    exec(compile("def step():\n    import json\n    json.loads('[')", str(module), "exec"), found)
    with pytest.raises(ValueError, match="Expecting value") as caught:
        found["step"]()
    cause = raised(caught.value, "rank1.log", tmp_path)
    place = "(vendors/acme/anvil.py:3, traceback in rank1.log)"
    assert cause == f"JSONDecodeError: Expecting value: line 1 column 2 (char 1) {place}"
    failure = Failure(ranks=(1,), cause=f"rank 1: {cause}", last_lines=RAISED)
    assert gist(failure, tmp_path, tmp_path) == [f"rank 1: {cause}"], "the place is told once"
    assert raised(StepError("no such device"), "rank1.log", tmp_path) == "no such device"
    assert raised(ValueError(), "rank1.log", tmp_path) == "ValueError (traceback in rank1.log)"


@pytest.mark.parametrize("hosts, expected", [(("a", "b"), "torchrun failed on b"), (("a",), "torchrun failed")])
def test_an_agent_that_ends_before_any_rank_begins_is_quoted(
    tmp_path: Path, hosts: tuple[str, ...], expected: str
) -> None:
    """The first node's is ended with it and has printed nothing."""
    for node, printed in enumerate(("", "DistNetworkError: timed out\n")[-len(hosts) :]):
        (tmp_path / f"noderank{node}").mkdir()
        (tmp_path / f"noderank{node}/agent.log").write_text(printed)
    known = [{"node": node, "name": name} for node, name in enumerate(hosts)]
    failure = failure_of(tmp_path, (), (), {"status": "failed", "hosts": known})
    assert failure == Failure(ranks=(), cause=expected, last_lines="DistNetworkError: timed out")


def test_a_hang_of_more_loaders_than_cores_says_so_once(tmp_path: Path) -> None:
    why = too_many_loaders({"num_workers": 5000})
    hang = {"event": "hang", "position": (7, 2, False), "phase": "data", "step": 7, "seconds": 30.0, "loaders": why}
    failure = failure_of(tmp_path, (), [{**hang, "rank": rank} for rank in range(3)], None)
    assert failure is not None and failure.cause.count(why) == 1
    assert why.startswith("num_workers is 5000, and there are ")
    assert not any(too_many_loaders(few) for few in ({"num_workers": 0}, {"num_workers": 1}, {}))
    assert "1 in each of 5000 processes, and" in too_many_loaders({"num_workers": 1}, 5000)


@pytest.mark.parametrize("cut, steps", [(0, 8), (1, None), (2, None)])
def test_a_log_without_its_end_has_no_steps(cut: int, steps: int | None) -> None:
    total = {"step": 8, "samples": 64, "train_seconds": 2.0, "compute_seconds": 1.0, "data_seconds": 0.5}
    written = [{"event": kind, **total} for kind in ("train_begin", "steps", "train_end", "rank_end")]
    whole = [{"time": 1.0, "clock": 1, "communication": None, **event} for event in written]
    found = figures_of(RankLog(1).take(whole[: len(whole) - cut]))
    assert found.steps == steps and found.compute_seconds == 1.0


@pytest.mark.parametrize(
    "rank, apart, expected", [(3, 24.0, (117.0, 9.5)), (3, None, (93.0, 10.0)), (0, 24.0, (93.0, 10.0))]
)
def test_a_straggler_that_was_resumed_has_its_own_seconds(
    rank: int, apart: float | None, expected: tuple[float, float]
) -> None:
    """Its clock went on from rank 0's; of an older checkpoint nobody knows by how much its own was longer."""
    total = {"step": 8, "samples": 64, "train_seconds": 110.0, "compute_seconds": 93.0, "data_seconds": 10.0}
    known = {} if apart is None else {"apart": {"compute": apart, "data": -0.5}}
    written = [{"event": "resumed", "step": 4, **known}, {"event": "train_begin"}, {"event": "train_end", **total}]
    found = figures_of(RankLog(rank).take({"time": 1.0, "clock": n, **event} for n, event in enumerate(written)))
    assert (found.compute_seconds, found.data_seconds) == expected


def finished(**changes: Any) -> list[dict[str, Any]]:
    """A rank's log of a training whose last weights took three seconds to be confirmed."""
    total = {"step": 8, "samples": 64, "train_seconds": 20.0, "metric": 0.95, "converged": True}
    check = {"name": PARAMETERS, "passed": True, "figure": 0.0, "bound": 0.0, "meaning": "m"}
    written: list[dict[str, Any]] = [
        {"event": "check", "time": 9.0, **check},
        {"event": "check", "time": 9.5, **check, **changes},
        {"event": "check", "time": 9.6, **check},
        {"event": "train_begin", "time": 10.0, "train_seconds": 0.0},
        {"event": "epoch_begin", "time": 10.0, "epoch": 0},
        {"event": "evaluation", "time": 30.0, **total},
        {"event": "confirmation", "time": 33.5, "step": 8, "samples": 64, "metric": 0.94, "took_seconds": 3.0},
        {"event": "train_end", "time": 33.6, **total},
    ]
    return [{"clock": number, **event} for number, event in enumerate(written)]


INITIAL = {"event": "init_end", "time": 9.0, "clock": 0}


def test_the_evaluation_in_the_cases_own_model_ends_a_training() -> None:
    log = RankLog(0).take(finished())
    assert log.window() == (10.0, 33.6) and log.ended() == 33.6
    assert [epoch.ended for epoch in log.epochs.kept()] == [33.6]
    assert (log.reached() or {})["metric"] == 0.94, "the case's own model decides"


def test_a_confirmation_that_decided_nothing_ended_no_training() -> None:
    later = {"event": "train_end", "time": 50.0, "clock": 99, "step": 16, "samples": 128, "converged": False}
    evaluated = {"event": "evaluation", "time": 49.0, "clock": 98, "step": 16, "metric": 0.5, "train_seconds": 39.0}
    log = RankLog(0).take([*finished()[:-1], evaluated, later])
    assert log.ended() == 50.0 and (log.reached() or {})["metric"] == 0.5


def test_a_check_that_failed_once_has_failed() -> None:
    assert RankLog(0).take(finished()).checks[PARAMETERS].passed
    assert not RankLog(0).take(finished(passed=False)).checks[PARAMETERS].passed


@pytest.mark.parametrize("name", [CLOCK, SESSION_CLOCK, OUTSIDE, PLAN, REPLAYED, SEEDED, "keeps"])
def test_a_check_that_others_make_is_not_a_ranks_to_tell(name: str) -> None:
    assert RankLog(0).take(finished(name=name)).checks.keys() == {PARAMETERS}


@pytest.mark.parametrize(
    "least, most, expected",
    [(19.5, 20.5, None), (60.0, 62.0, "its last evaluation came after 20 s"), (0.0, 5.0, "its last evaluation")],
)
def test_the_seconds_to_the_last_evaluation_are_held_too(least: float, most: float, expected: str | None) -> None:
    """They are those to the target: of an end that is told later nobody sees how long it took to get there."""
    seen = {"event": "watched", "least": 19.9, "most": 20.2, "to_evaluation": [least, most]}
    (check,) = clock_checks(RankLog(0).take(finished()), [seen], None)
    assert check.passed == (expected is None) and (expected is None or expected in check.meaning)


@pytest.mark.parametrize("changes", [{"most": 200.0}, {"least": 0.0, "most": 100.0}, {"to_evaluation": [0.0, 100.0]}])
def test_an_agent_that_saw_too_little_holds_no_clock(changes: dict[str, Any]) -> None:
    """Whoever kept it from looking: then the check is missing, and the run is none."""
    seen = {"event": "watched", "least": 19.9, "most": 20.2, "to_evaluation": [19.9, 20.2], **changes}
    assert not list(clock_checks(RankLog(0).take(finished()), [seen], None))


@pytest.mark.parametrize("least, most, passes", [(19.9, 20.2, True), (199.0, 200.0, False), (1.0, 2.0, False)])
def test_a_ranks_seconds_are_held_against_its_agents(least: float, most: float, passes: bool) -> None:
    log = RankLog(0).take(finished())
    (check,) = clock_checks(log, [{"event": "watched", "least": least, "most": most}], None)
    assert check.passed == passes


def seen(least: float, most: float, *to_evaluation: float) -> list[dict[str, Any]]:
    """What an agent saw of a training's time."""
    to_it = {"to_evaluation": list(to_evaluation)} if to_evaluation else {}
    return [{"event": "watched", "least": least, "most": most, **to_it}]


@pytest.mark.parametrize(
    "agent, expected",
    [
        ((), (20.0, 20.0)),
        (seen(19.9, 20.2, 19.8, 20.1), (20.0, 20.0)),
        (seen(21.0, 21.2), (21.0, 20.0)),
        (seen(21.0, 21.2, 20.5, 20.7), (21.0, 20.5)),
    ],
)
def test_no_time_is_less_than_the_agent_saw(agent: list[dict[str, Any]], expected: tuple[float, float]) -> None:
    """Nor are rates by it higher; what is added is no evaluation's, by nobody's word."""
    parts = {"data": 1.0, "compute": 15.0, "evaluation": 2.0, "checkpoint": 0.0}
    took = {f"{part}_seconds": seconds for part, seconds in parts.items()} | {
        "communication": None,
        "took_seconds": 1.0,
    }
    log = RankLog(0).take([{**event, **took} for event in [INITIAL, *finished()]])
    to_end, to_evaluation = least_seconds(log, agent)
    times = durations(log, [log], SinceBegin({"event": "round_begin", "time": 0.0, "clock": 0}, None), to_end)
    evaluations = _of_first(log, to_evaluation)["evaluations"]
    assert (times["train_seconds"], evaluations[-1].seconds) == expected
    assert times["no_eval_seconds"] == expected[0] - 2.0
    assert sum(times["split"].model_dump(include={*parts, "other"}).values()) == pytest.approx(expected[0])
    rates = rates_of(log, times, resumed=False)
    assert rates is not None and rates.raw == 64 / expected[0]
    assert (rates.pure_compute or 0) >= (rates.no_eval or 0) >= rates.raw


@pytest.mark.parametrize("train, samples", [(1000.0, 10**9), (1e-9, 0)])
def test_rates_of_a_resumed_run_have_nothing_of_its_checkpoint(train: float, samples: int) -> None:
    """Whatever that says of samples and seconds before, which nobody has counted."""
    totals = {"train_seconds": train + 20.0, "evaluation_seconds": 3.0, "compute_seconds": train + 15.0}
    begin = {"event": "train_begin", "samples": samples, "train_seconds": train}
    parts = {"evaluation_seconds": 1.0, "compute_seconds": train}
    end = {"event": "train_end", "samples": samples + 640, **totals}
    times = {"train_seconds": train + 20.0, "no_eval_seconds": train + 17.0, "pure_compute_seconds": train + 15.0}
    rates = rates_of(RankLog(0).take([begin | parts, end]), times, resumed=True)
    assert rates is not None
    assert rates.model_dump() == pytest.approx({"raw": 32.0, "no_eval": 640 / 18, "pure_compute": 640 / 15})
    assert rates_of(RankLog(0).take([begin, end]), times, resumed=True) is None, "it does not say how much was before"


def test_what_was_trained_before_a_resumption_is_added_to_what_the_agent_saw() -> None:
    written = finished()
    written[3]["train_seconds"] = 15.0
    assert least_seconds(RankLog(0).take(written), seen(5.5, 5.8, 5.0, 5.2)) == (20.5, 20.0)
    assert least_seconds(RankLog(0).take(written[:-1]), seen(5.5, 5.8, 5.0, 5.2)) == (0.0, 0.0), "it has no end"


@pytest.mark.parametrize(
    "agent, expected",
    [
        ((), False),
        (seen(0.1, 0.3), False),
        (seen(99.0, 99.2), False),
        (seen(200.0, 200.2), True),
        (seen(200.0, 202.0), False),
        (seen(200.0, 200.2, 199.0, 199.2), True),
        (seen(200.0, 200.2, 1.0, 1.2), False),
    ],
)
def test_how_close_an_agents_clock_tells_the_time(agent: list[dict[str, Any]], expected: bool) -> None:
    """Of a rank that says a second less than it took, where that is more than a fiftieth of all, time is its claim."""
    assert tells_closely(agent) == expected


@pytest.mark.parametrize("least, passes", [(0.0, True), (50.0, True), (200.0, False)])
def test_a_ranks_seconds_are_held_against_its_sessions(least: float, passes: bool) -> None:
    """What comes late over a connection shows less; a tenth of the time does not pass."""
    (check,) = clock_checks(RankLog(0).take(finished()), [], {"watched": {"least": least}})
    assert (check.name, check.passed) == (SESSION_CLOCK, passes)


@pytest.mark.parametrize("kind", ["steps", "evaluation", "train_end"])
def test_the_seconds_that_are_reported_are_the_ones_that_are_held(kind: str) -> None:
    """Whatever a rank tells last, true or not, before it."""
    later = {**finished()[-1], "event": kind, "clock": 99, "train_seconds": 0.2, "losses": [1.0], "first": 8}
    later |= {"epoch": 0, "learning_rate": 0.1, "compute_seconds": 0.1}
    log = RankLog(0).take([*finished(), later])
    (check,) = clock_checks(log, [{"event": "watched", "least": 19.9, "most": 20.2}], None)
    assert log.seconds("train") == 0.2 and not check.passed


def test_without_the_agents_seconds_there_is_no_check() -> None:
    assert not list(clock_checks(RankLog(0).take(finished()), [], None))
    assert not list(
        clock_checks(RankLog(0).take(finished()[:-1]), [{"event": "watched", "least": 19.9, "most": 20.1}], None)
    )


TASK = {"metric": "top1", "global_batch_size": 4}


def test_logs_of_further_servers_are_read(tmp_path: Path) -> None:
    """Each one's checks, and its damage by the server's name."""
    served = {"mode": "per_server_mean", "throughputs": [1.0] * 3, "accuracies": [1.0] * 3}
    served |= {"throughput": 1.0, "accuracy": 1.0}
    for home in ("", "server1/", "server2/"):
        folder = tmp_path / f"round1/{home}noderank0"
        folder.mkdir(parents=True)
        log = EventLog(folder / "rank0.jsonl")
        log.write("check", **asdict(passed(PARAMETERS, passed=home != "server2/")))
        log.close()
    (tmp_path / "round1/server1/noderank0/rank0.jsonl").open("ab").write(b"rubbish\n")
    (tmp_path / "round1/server2/noderank0/agent.jsonl").write_bytes(b"rubbish\n")
    session = EventLog(tmp_path / "events.jsonl")
    session.write("round_begin", round=1, seed=1)
    session.write("round_end", round=1, status="succeeded", instances=served)
    session.close()
    config = EffectiveConfig("training", "tiny", "embedded", "acme", TASK, {"precision": "fp32"})
    events = list(read_events(tmp_path / "events.jsonl", SESSION_EVENTS))
    (run,), firsts, _, damaged = _rounds(tmp_path, events, 1, config)
    assert [check.passed for check in run.checks] == [True] and len(firsts) == 1
    assert [[check.passed for check in server.checks] for server in run.servers] == [[True], [False]]
    assert all(server.converged is None and server.failure is None for server in run.servers)
    assert [what.split(": ")[0] for what in damaged] == ["round1/server1/noderank0/rank0.jsonl, line 2"], damaged
    assert [what.split("/")[:3] for what in _damaged_agents(tmp_path)] == [["round1", "server2", "noderank0"]]


@pytest.mark.parametrize(
    "servers, expected",
    [
        ([{"started": 0.0, "ended": 50.0}, {"started": -100.0, "ended": 400.0}, {}], [(250.0, 500.0), (150.0, 50.0)]),
        ([], [(150.0, 50.0), (150.0, 50.0)]),
    ],
    ids=["as they tell", "an older log"],
)
def test_a_servers_times_are_by_its_own_clock(
    tmp_path: Path, servers: list[dict[str, float]], expected: list[tuple[float, float]]
) -> None:
    """The first one's are the run's own. Each began when it had its image, and shows another time."""
    began = 1_800_000_000.0
    served = {"mode": "per_server_mean", "throughputs": [1.0] * 3, "accuracies": [1.0] * 3}
    served |= {"throughput": 1.0, "accuracy": 1.0}
    for home in ("", "server1/", "server2/"):
        folder = tmp_path / f"round1/{home}noderank0"
        folder.mkdir(parents=True)
        ready = {"event": "init_end", "time": began + 150, "clock": 1}
        (folder / "rank0.jsonl").write_text(json.dumps(ready) + "\n")
    end = {"started": began, "ended": began + 50, "instances": served}
    if servers:
        end["servers"] = [{name: began + shown for name, shown in each.items()} for each in servers]
    session = EventLog(tmp_path / "events.jsonl")
    session.write("round_begin", round=1, seed=1)
    session.write("round_end", round=1, status="succeeded", **end)
    session.close()
    config = EffectiveConfig("training", "tiny", "embedded", "acme", TASK, {"precision": "fp32"})
    events = list(read_events(tmp_path / "events.jsonl", SESSION_EVENTS))
    (run,), *_ = _rounds(tmp_path, events, 1, config)
    assert (run.init_seconds, run.e2e_seconds) == (150.0, 50.0)
    assert [(server.init_seconds, server.e2e_seconds) for server in run.servers] == expected


SAID: dict[str, dict[str, Any]] = {
    "dataset": {"name": "corners", "sha256": "d" * 64, "items": 100, "validation_items": 50},
    "model": {"parameters": 196},
    "flops": {"counted": 9.0},
    "optimizer": {"name": "AdamW"},
}


@pytest.mark.parametrize(
    "kind, changes, unlike",
    [
        ("dataset", {"items": None}, "dataset"),
        ("dataset", {"sha256": "f" * 64, "validation_items": 49}, "dataset, validation items"),
        ("model", {"parameters": 340_000_000}, "parameters"),
        ("flops", {"counted": 90.0}, "FLOPs"),
        ("optimizer", {"name": "LAMB"}, "optimizer"),
        ("optimizer", {}, ""),
    ],
)
@pytest.mark.parametrize("liar", [1, 2])
def test_all_runs_say_the_same_of_their_task(
    tmp_path: Path, kind: str, changes: dict[str, Any], unlike: str, liar: int
) -> None:
    """The record has what the first one says; who missed the target was never examined."""
    session = EventLog(tmp_path / "events.jsonl")
    for number in (1, 2):
        folder = tmp_path / f"round{number}/noderank0"
        folder.mkdir(parents=True)
        log = EventLog(folder / "rank0.jsonl")
        for name, fields in SAID.items():
            log.write(name, **fields | (changes if (name, number) == (kind, liar) else {}))
        log.close()
        session.write("round_begin", round=number, seed=number)
        session.write("round_end", round=number, status="succeeded")
    session.close()
    events = list(read_events(tmp_path / "events.jsonl", SESSION_EVENTS))
    config = EffectiveConfig("training", "tiny", "embedded", "acme", TASK, {"precision": "fp32"})
    (first, second), *_ = _rounds(tmp_path, events, 1, config)
    assert not first.checks
    found = [(check.name, check.passed, check.meaning) for check in second.checks]
    said = f"its ranks say of its {unlike} something else than those of the first run"
    assert found == ([(PLAN, False, said)] if unlike else [])


def test_of_a_miss_it_is_told_why_its_recorded_steps_were_not_done_again(tmp_path: Path) -> None:
    missed = {"event": "train_end", "time": 30.0, "clock": 9, "step": 8, "samples": 64, "converged": False}
    examined = {"event": EXAMINED, "time": 40.0, "clock": 9, "reason": "rank 0 left no final.safetensors"}
    folder = tmp_path / "noderank0"
    folder.mkdir()
    (folder / "rank0.jsonl").write_text(json.dumps({**missed, **TOTALS}) + "\n")
    (folder / "agent.jsonl").write_text(json.dumps({**examined, "unreplayed": "it took longer"}) + "\n")
    run, _ = collect_run(tmp_path, BEGIN, {**BEGIN, "event": "round_end", "status": "succeeded"}, 1)
    assert run.examination == Examination(claimed=None, unreplayed="it took longer") and run.converged is False
    (reasons,) = (what for kind, what in stages(make_training(run, audited=True)) if kind == "ERROR" and what)
    assert "its recorded steps were not done again: it took longer" in reasons
    assert not any("evaluated" in reason for reason in reasons)
    assert not any("outside" in figure.label for figure in figures(make_training(run)))
    (folder / "agent.jsonl").write_text(json.dumps(examined) + "\n")
    assert collect_run(tmp_path, BEGIN, None, 1)[0].examination is None, "nothing was recorded"


def test_a_server_of_a_run_that_broke_off_is_held_to_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "noderank0"
    folder.mkdir()
    log = EventLog(folder / "rank0.jsonl")
    log.write("dataset", **SAID["dataset"])
    log.close()
    sound, logs = collect_run(
        tmp_path,
        BEGIN,
        {"event": "round_end", "status": "succeeded", "time": 2.0, "clock": 1},
        1,
    )
    assert _of_task(sound, logs, {}) == sound
    assert _of_task(sound, logs, _task(sound, logs) | {"optimizer": "LAMB"}) != sound


def test_a_run_short_of_the_target_took_for_ever() -> None:
    """By its weights, whatever its ranks say."""
    short = make_run(examination=Examination(claimed=0.95, metric=0.85, weight=1e6, samples=50, of=50))
    config = EffectiveConfig("training", "net", "embedded", "acme", {"flops": 1.0}, {})
    begun = {"chip": {"name": "chip"}, "devices": 1}
    times = [
        _figures(make_training(*runs), begun, config, [])["seconds_to_target"]
        for runs in ([make_run()], [make_run(), short])
    ]
    assert times[0] is not None and times[1] is None


@pytest.mark.parametrize("end", [-62135596800.0, 0.0])
def test_a_rank_that_ended_at_no_time_has_no_result(tmp_path: Path, end: float) -> None:
    """Its agent lives on to say so."""
    begin = {"event": "train_begin", "time": 1.79e9, "clock": 1, "steps": 0, "samples": 0}
    ended = {"event": "train_end", "time": end, "clock": 2, "samples": 100, "converged": True, **TOTALS}
    (tmp_path / "rank0.jsonl").write_text(f"{json.dumps(begin)}\n{json.dumps(ended)}\n")
    leave_results(tmp_path, 0, [0], 1)
    assert not list(tmp_path.glob("result*"))


@pytest.mark.parametrize(("steps", "fits"), [(["step"] * 8, True), (["step"] * 65, False), (["s" * 257], False)])
def test_what_is_adapted_is_a_few_words(tmp_path: Path, steps: list[str], fits: bool) -> None:
    log = EventLog(tmp_path / "rank0.jsonl")
    log.write("adapted", steps=steps)
    log.close()
    (event,) = read_events(log.path, RANK_EVENTS)
    assert (event["event"] == "adapted") == fits


def test_a_run_that_broke_off_is_not_quoted(tmp_path: Path) -> None:
    """Nobody holds it to anything: it may say whatever it likes, and end."""
    session = EventLog(tmp_path / "events.jsonl")
    for number, status in ((1, "failed"), (2, "succeeded")):
        folder = tmp_path / f"round{number}/noderank0"
        folder.mkdir(parents=True)
        log = EventLog(folder / "rank0.jsonl")
        log.write("dataset", **SAID["dataset"] | {"name": f"of run {number}"})
        log.close()
        session.write("round_begin", round=number, seed=number)
        session.write("round_end", round=number, status=status)
    session.close()
    events = list(read_events(tmp_path / "events.jsonl", SESSION_EVENTS))
    config = EffectiveConfig("training", "tiny", "embedded", "acme", TASK, {"precision": "fp32"})
    (broke_off, sound), firsts, *_ = _rounds(tmp_path, events, 1, config)
    assert broke_off.failure and not sound.failure and not sound.checks
    assert [log.last["dataset"]["name"] for log in firsts] == ["of run 2", "of run 1"]


@pytest.mark.parametrize(
    "events, cause",
    [
        (["rank_begin", "rank_end"], None),
        ([], None),  # its log is not there: told as that
        (["rank_begin"], "rank 1 ended with exit code 0 before its training did"),
    ],
)
def test_who_ends_as_if_all_were_well_before_the_training_does(
    tmp_path: Path, events: list[str], cause: str | None
) -> None:
    whole = RankLog(0, 0).take([{"event": name} for name in ("rank_begin", "rank_end")])
    found = failure_of(
        tmp_path, [whole, RankLog(1, 0).take([{"event": name} for name in events])], [], {"status": "succeeded"}
    )
    assert (found and found.cause) == cause


def failed(folder: Path, raised: dict[int, float], aborted: dict[int, float], skew: float) -> Failure | None:
    """Of a training on two hosts, rank 1 on the second, whose clock is ahead: when ranks raised and were aborted."""
    for node in range(2):
        (folder / f"noderank{node}").mkdir()
        (folder / f"noderank{node}" / f"rank{node}.log").touch()
    logs = [
        RankLog(rank, rank).take([{"event": "rank_failed", "rank": rank, "reason": f"reason {rank}", "time": time}])
        for rank, time in raised.items()
    ]
    died = [{"event": "rank_died", "rank": rank, "code": -6, "died": int(time)} for rank, time in aborted.items()]
    hosts = [{"node": node, "name": f"host{node}", "skew": node * skew} for node in range(2)]
    return failure_of(folder, logs, died, {"status": "failed", "hosts": hosts})


@pytest.mark.parametrize(
    "raised, aborted, skew, cause",
    [
        ({0: 10.0, 1: 10.4}, {}, 0.0, "rank 0 on host0: reason 0"),
        ({0: 10.0, 1: 10.4}, {}, 1.0, "rank 1 on host1: reason 1"),
        ({0: 10.0}, {1: 40.7}, 0.0, "rank 0 on host0: reason 0"),
        ({0: 41.0}, {1: 40.7}, 0.0, "rank 1 on host1 was killed by signal 6"),
        ({0: 10.0}, {1: 11.7}, 5.0, "rank 1 on host1 was killed by signal 6"),
        ({}, {0: 10.0, 1: 11.7}, 0.0, "rank 0 on host0 was killed by signal 6"),
        ({}, {0: 10.0, 1: 11.7}, 5.0, "rank 1 on host1 was killed by signal 6"),
        ({}, {0: 10.2, 1: 10.5}, 0.01, "rank 0 on host0 was killed by signal 6"),
    ],
    ids=[
        "first",
        "clock ahead",
        "who waited is aborted",
        "an abort breaks exchanges",
        "an abort, clock ahead",
        "killed",
        "killed, clock ahead",
        "killed in one second",
    ],
)
def test_who_failed_first_brought_others_down(
    tmp_path: Path, raised: dict[int, float], aborted: dict[int, float], skew: float, cause: str
) -> None:
    """By the clocks of both hosts, as far apart as they were."""
    failure = failed(tmp_path, raised, aborted, skew)
    assert failure is not None and failure.cause == cause


def test_a_node_with_cores_to_spare_hides_no_other() -> None:
    spare, needed = ({"others": others, "stolen": 0.0, "idle": idle} for others, idle in ((0.1, 0.8), (0.08, 0.05)))
    seen = contention_of([[{"event": "contention", "time": 1.0, "clock": 1, **each}] for each in (spare, needed)])
    assert seen is not None and seen.others == 0.08


def test_a_node_of_which_nobody_knows_hides_behind_no_other_nor_one_that_left_its_cores() -> None:
    event = {"event": "contention", "time": 1.0, "clock": 1, "stolen": 0.0, "idle": 0.0}
    quiet, roaming = {**event, "others": 0.1}, {**event, "others": 0.0, "beyond": [3]}
    assert contention_of([[quiet], []]) is None and contention_of([]) is None
    seen = contention_of([[quiet], [roaming]])
    assert seen is not None and (seen.others, seen.beyond) == (0.1, (3,))


@pytest.mark.parametrize("counted, share", [(None, 0.5), (100.0, 0.5), (80.0, 0.4), (105.0, 0.5)])
def test_a_count_of_a_ranks_makes_no_mfu_larger_than_the_case_does(counted: float | None, share: float) -> None:
    peak = Peak(flops_per_second=1000.0, precision="fp32", source="s")
    flops = Flops(declared=100.0, counted=counted)
    assert _utilisation(Chip(name="c", units=1, peak=peak), flops, 2, 10.0).mfu == pytest.approx(share)
