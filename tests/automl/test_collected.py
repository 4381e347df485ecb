"""What a record has of its session's own log, and what of its search's journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proofmark.automl.outcome.collect import collect
from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.automl.search.journal import FILE
from tests.fuzz.searches import JOURNAL, SESSION

DRIVER, END = (next(event for event in JOURNAL if event["event"] == kind) for kind in ("driver_begin", "search_end"))


def collected(folder: Path, journal: list[dict[str, Any]] = JOURNAL, **changed: dict[str, Any]) -> AutoMLRecord:
    """The record of a session of one search, with changed fields of the events of these kinds."""
    for name, events in (("events.jsonl", SESSION), (f"search/{FILE}", journal)):
        (folder / name).parent.mkdir(exist_ok=True)
        lines = [json.dumps(event | changed.get(event["event"], {})) for event in events]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return collect(folder)


@pytest.mark.parametrize("host", [None, "another"])
def test_nobody_knows_the_peak_of_another_machine(tmp_path: Path, host: str | None) -> None:
    found = collected(tmp_path, trial_end={"host": host}).utilisation
    assert (found.mfu is None) == (host is not None)
    assert found.reason == (host and "trials ran on other machines than the session's, whose chips nobody saw")


@pytest.mark.parametrize("resumed, others, told", [(False, 0.1, True), (True, 0.0, True), (False, 0.0, False)])
def test_contention_is_that_of_the_search_and_not_of_judging_its_best(
    tmp_path: Path, resumed: bool, others: float, told: bool
) -> None:
    """As its seconds are. What a session under other conditions saw is its own, and an older one's record has that."""
    begin = {"trials_among_others": False} if told else {}
    seen = collected(tmp_path, search={"resumed": resumed}, run_begin=begin).contention
    assert seen is not None and seen.others == others


@pytest.mark.parametrize("seconds, devices, part", [(0, 8, 1.0), (6, 3, 1 / 4)], ids=["only judged", "searched on"])
def test_each_drivers_devices_count_for_its_own_seconds(
    tmp_path: Path, seconds: int, devices: int, part: float
) -> None:
    """The first one had a device for 6 s. A figure is a share of what all had: of 6 + 6 * 3 s where it is a quarter."""
    (tmp_path / "one").mkdir()
    (tmp_path / "resumed").mkdir()
    driver = DRIVER | {"clock": 20 * 10**9, "devices": devices, "places": devices}
    end = END | {"clock": (20 + seconds) * 10**9, "time": driver["time"] + seconds}
    before, found = collected(tmp_path / "one"), collected(tmp_path / "resumed", [*JOURNAL, driver, end])
    assert before.utilisation.mfu and before.training_share
    assert found.utilisation.mfu == pytest.approx(part * before.utilisation.mfu)
    assert found.training_share == pytest.approx(part * before.training_share)
