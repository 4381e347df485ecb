"""How long a run of a training took: here by the monotonic clock, on other hosts by clocks that are some time ahead."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofmark.training.logs.collect import _rounds
from proofmark.training.logs.seed_run import collect_run
from proofmark.training.outcome.figures import figures
from proofmark.training.outcome.record import SeedRun
from proofmark.training.outcome.verdict import stages
from proofmark.verification.again import faults
from tests.training_records import make_run, make_training

BEGUN, SECOND = 1_790_000_000.0, 10**9
TOTALS = {"epoch": 1, "step": 10, "communication": None, "train_seconds": 9.0, "compute_seconds": 8.0}
TOTALS |= dict.fromkeys(("data_seconds", "evaluation_seconds", "checkpoint_seconds"), 0.0)
MOMENTS = st.floats(1e9, 2e9)


def collected(folder: Path, begin: Any, init_end: Any, last: Any, end: Any, **found: Any) -> SeedRun:
    """A run from (time, clock) of its beginning, its rank's readiness, its rank's last event and its end, if any."""
    rank = folder / "noderank0" / "rank0.jsonl"
    rank.parent.mkdir(exist_ok=True)
    kinds: list[tuple[str, Any, dict[str, Any]]] = [
        ("init_end", init_end, {}),
        ("train_begin", init_end, {"steps": 0, "samples": 0}),
        ("train_end", last, {"samples": 100, "converged": True, **TOTALS}),
    ]
    events = [{"event": kind, "time": time, "clock": clock, **fields} for kind, (time, clock), fields in kinds]
    rank.write_text("".join(json.dumps(event) + "\n" for event in events))
    ended = {"event": "round_end", "time": end[0], "clock": end[1], "status": "succeeded", **found} if end else None
    first = {"event": "round_begin", "seed": 0, "time": begin[0], "clock": begin[1]}
    return collect_run(folder, first, ended, 1)[0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(MOMENTS, MOMENTS, MOMENTS, MOMENTS)
def test_here_no_clock_that_is_set_matters(tmp_path: Path, a: float, b: float, c: float, d: float) -> None:
    run = collected(tmp_path, (a, 0), (b, 5 * SECOND), (c, 14 * SECOND), (d, 15 * SECOND))
    assert (run.init_seconds, run.e2e_seconds) == (5.0, 15.0)
    assert run.split is not None and run.split.init == 5.0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(MOMENTS, MOMENTS, MOMENTS, MOMENTS | st.none(), st.booleans())
def test_nothing_is_negative_whatever_the_clocks_show(
    tmp_path: Path, a: float, b: float, c: float, d: float | None, elsewhere: bool
) -> None:
    found = {"started": a, "hosts": [{"node": 0, "name": "h", "skew": -0.5, "round_trip": 0.1}]} if elsewhere else {}
    run = collected(tmp_path, (a, 9), (b, 5), (c, 3), (d, 1) if d else None, **found)
    assert run.init_seconds is not None and run.init_seconds >= 0
    assert run.e2e_seconds is not None and run.e2e_seconds >= 0


@pytest.mark.parametrize("skew", [-0.5, 0.0, 0.5])
def test_elsewhere_a_host_is_read_as_far_ahead_as_it_is(tmp_path: Path, skew: float) -> None:
    hosts = [{"node": 0, "name": "h", "skew": skew, "round_trip": 0.1}]
    ready, last = BEGUN + 30 + 5 + skew, BEGUN + 30 + 14 + skew
    end = (BEGUN + 30 + 16, 46 * SECOND)
    run = collected(tmp_path, (BEGUN, 0), (ready, 1), (last, 2), end, started=BEGUN + 30, hosts=hosts)
    assert run.init_seconds == pytest.approx(5.0) and run.e2e_seconds == pytest.approx(16.0)


@pytest.mark.parametrize("found", [{}, {"started": BEGUN + 3600}], ids=["here", "after a queue"])
def test_when_its_seconds_began_is_kept(tmp_path: Path, found: dict[str, float]) -> None:
    (tmp_path / "round1").mkdir()
    begin = {"event": "round_begin", "round": 1, "seed": 0, "time": BEGUN, "clock": 0}
    end = {"event": "round_end", "round": 1, "time": BEGUN + 3650, "clock": 3650 * SECOND, "status": "succeeded"}
    config: Any = None
    ((run,), *_) = _rounds(tmp_path, [begin, end | found], 1, config)
    assert (run.started, run.begun) == (BEGUN, found.get("started"))
    assert run.zero == found.get("started", BEGUN) and run.e2e_seconds == (50.0 if found else 3650.0)


def test_a_record_from_before_that_was_kept_is_what_its_logs_give(tmp_path: Path) -> None:
    record, made = make_training(make_run()), make_training(make_run(begun=BEGUN + 3600))
    suite: Any = SimpleNamespace(collect=lambda *_: made, held_logs=lambda _: (), stages=stages, figures=figures)
    assert list(faults(suite, record, tmp_path)) == []
