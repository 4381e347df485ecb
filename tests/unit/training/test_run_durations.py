"""How long a run of a training took: here by the monotonic clock, on other hosts by clocks that are some time ahead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofmark.training.logs.seed_run import collect_run
from proofmark.training.outcome.record import SeedRun

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
