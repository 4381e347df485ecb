"""Whether a training computes at one pace."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.record.events.log import EventLog, read_events
from proofmark.record.parts import Rate
from proofmark.training.logs.pace import PARTS, pace_of
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.outcome.figures import figures
from proofmark.training.outcome.rank_event_types import RANK_EVENTS
from proofmark.training.outcome.verdict import stages
from proofmark.training.ranks.account import Account, Position
from proofmark.training.ranks.clock import Clock
from proofmark.verification.again import faults
from tests.training_records import make_run, make_training

GROUP = 320
"""Samples of ten steps, which a rank tells of at once."""


def log_of(groups: Iterable[float], before: float = 0.0, size: int = 10, event: str = "steps") -> RankLog:
    """Of a rank that computes its groups of steps in so many seconds each, after others before."""
    log, seconds = RankLog(0), before
    shared = {"event": event, "first": 1, "losses": [1.0], "learning_rate": 0.1, "epoch": 0, "time": 0.0}
    for number, took in enumerate(groups, 1):
        seconds += took
        log.take([{**shared, "step": size * number, "samples": 32 * size * number, "compute_seconds": seconds}])
    return log


@pytest.mark.parametrize("before", [0.0, 1e6])
def test_one_pace(before: float) -> None:
    """What comes first is preparation, and a checkpoint's word is no part of it."""
    pace = pace_of(log_of([9.0, *[0.25] * 100], before))
    assert pace is not None and pace.noise is not None
    assert (pace.value, pace.noise) == pytest.approx((GROUP / 0.25, 0.0), abs=1e-6)


def test_what_is_prepared_for_the_first_short_batch_is_no_part_of_a_pace() -> None:
    """Compiled once more, for its size, at the end of the first epoch; the next epochs' are as fast as any."""
    log, (steps, samples, seconds) = RankLog(0), (0, 0, 0.0)
    for number in range(100):
        short = number % 20 == 19
        steps, samples = steps + 10, samples + GROUP - (30 if short else 0)
        seconds += 0.25 + (40.0 if number == 19 else 0.0) - (0.02 if short else 0.0)
        log.computed.extend([(steps, samples, seconds)])
    pace = pace_of(log)
    assert pace is not None and pace.noise is not None
    assert pace.value == pytest.approx(GROUP / 0.25, rel=0.01) and pace.noise < 0.01


def test_a_pace_without_losses() -> None:
    """Of a `log_freq` that is longer than the training."""
    groups = [1.0, *[0.26] * 30, *[0.36] * 30]
    assert pace_of(log_of(groups, event="pace")) == pace_of(log_of(groups))


@pytest.mark.parametrize(("rank", "last_alone"), [(0, False), (1, False), (0, True)])
def test_compute_is_noted_as_it_goes(tmp_path: Path, rank: int, last_alone: bool) -> None:
    """Each quarter of a second, and less often the longer it has lasted: a log stays short."""
    position, log = Position(), EventLog(tmp_path / "rank0.jsonl")
    clock, place = Clock(lambda: None), SimpleNamespace(rank=rank, world=2)
    stepper: Any = SimpleNamespace(communication=SimpleNamespace(totals=lambda: None))
    account = Account(log, lambda *_: None, clock, place, stepper, position, last_alone)  # type: ignore[arg-type]
    for step in range(1, 20_001):
        position.steps, position.samples = step, 32 * step
        clock.parts["compute"] += 50_000_000
        account.write_pace()
    log.close()
    noted = [event["step"] for event in read_events(log.path, RANK_EVENTS)]
    if rank or last_alone:
        assert not noted
    else:
        assert noted[:3] == [1, 6, 11]
        assert noted[-1] - noted[-2] == pytest.approx(200, abs=2)
        assert len(noted) == pytest.approx(100 + 100 * math.log(1000 / 25), rel=0.05)


def test_another_pace_from_the_middle_on() -> None:
    pace = pace_of(log_of([1.0, *[0.26] * 30, *[0.36] * 30]))
    assert pace is not None and pace.noise is not None
    assert pace.noise > 0.1 and pace.max / pace.min == pytest.approx(0.36 / 0.26)
    assert pace.value == pytest.approx(60 * GROUP / (30 * 0.62))


@pytest.mark.parametrize(
    "groups", [[], [50.0], [1.0, *[0.2] * 24], [1.0, *[20.0] * 3], [1.0, 1.0, 1.0, 40.0, 1.0, 1.0]]
)
def test_too_little_for_a_pace(groups: list[float]) -> None:
    assert pace_of(log_of(groups)) is None


@pytest.mark.parametrize("steps", [21, 52, 54])
def test_too_few_steps_for_a_pace(steps: int) -> None:
    """Whose own scatter would be told as the machine's: the last part may be a single step."""
    size = 1 if steps == 21 else 10
    log, last = log_of([5.0 * size] * (steps // size), size=size), steps % size
    if last:
        log.take([{**log.last["steps"], "step": steps, "samples": 32 * steps, "compute_seconds": 5.0 * steps + 1.0}])
    assert pace_of(log) is None


def test_a_rank_whose_samples_do_not_grow() -> None:
    log = log_of([1.0] * 20)
    log.take([{**log.last["steps"], "samples": 0, "compute_seconds": 40.0}])
    assert pace_of(log) is None


def test_a_record_from_before_there_were_paces_is_judged_by_its_logs(tmp_path: Path) -> None:
    """So is one that was made to say nothing of it."""
    uneven = Rate(value=100.0, stdev=9.0, min=90.0, max=110.0)
    record, made = make_training(make_run()), make_training(make_run(pace=uneven))
    suite: Any = SimpleNamespace(collect=lambda *_: made, held_logs=lambda _: (), stages=stages, figures=figures)
    (found,) = faults(suite, record, tmp_path)
    assert found.startswith("its verdict is PASS, and its figures give AMBIGUOUS: its compute by parts of the training")


@given(st.lists(st.floats(-10, 1000, allow_nan=False), max_size=40))
def test_whatever_a_rank_says(groups: list[float]) -> None:
    pace = pace_of(log_of(groups))
    assert pace is None or (0 < pace.min <= pace.value * (1 + 1e-9) and len(groups) > PARTS)
