"""What is kept of a rank's log, which a vendor's code can dictate."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from proofmark.record.events.log import Event, read_events
from proofmark.record.events.types import EventReader
from proofmark.record.parts import FIRST
from proofmark.training.logs.hosts import contention_of
from proofmark.training.logs.ranks.handed_out import handed_out
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.outcome.event_types import AGENT_EVENTS
from proofmark.training.outcome.rank_event_types import RANK_EVENTS

DATASET = {"event": "dataset", "name": "d", "sha256": FIRST, "items": 12}


def read(folder: Path, *events: dict[str, Any], reader: EventReader = RANK_EVENTS) -> Iterable[Event]:
    path = folder / "rank0.jsonl"
    path.write_text("".join(json.dumps({"time": 1.0, "clock": 1, **event}) + "\n" for event in events))
    return read_events(path, reader)


def test_what_no_event_has_is_not_kept(tmp_path: Path) -> None:
    kept = {"event": "memory", "host_peak_bytes": 1, "device_peak_bytes": None, "device_total_bytes": None}
    begun, measured = read(tmp_path, {"event": "rank_begin", "rank": 0, "more": [[]] * 9}, kept | {"more": "x"})
    assert begun == {"event": "rank_begin", "time": 1.0, "clock": 1, "rank": 0}
    assert measured == {"time": 1.0, "clock": 1, **kept}


def test_of_an_event_that_fits_a_part_of_the_record_that_part_is_kept(tmp_path: Path) -> None:
    (dataset,) = read(tmp_path, {**DATASET, "origin": "o", "validation_items": 3, "more": 1})
    assert dataset == {"time": 1.0, "clock": 1, **DATASET, "origin": "o", "validation_items": 3}


def test_what_is_nested_has_no_more_either(tmp_path: Path) -> None:
    totals = dict.fromkeys(("epoch", "step", "samples"), 0) | {
        f"{part}_seconds": 0.0 for part in ("train", "data", "compute", "evaluation", "checkpoint")
    }
    kept = {"seconds": 0.0, "of": 0.0, "steps": 1, "reason": None}
    event = {"event": "train_end", "converged": True, **totals, "communication": kept | {"more": [1]}}
    assert [each["communication"] for each in read(tmp_path, event)] == [kept]


def test_made_up_kinds_of_events_fill_no_memory(tmp_path: Path) -> None:
    log = RankLog(0).take(read(tmp_path, *({"event": f"kind {number}", "x": [1] * 99} for number in range(99))))
    assert not log.last and not log.corrupt


def test_what_it_said_first_stands(tmp_path: Path) -> None:
    log = RankLog(0).take(read(tmp_path, DATASET, {**DATASET, "sha256": "1" * 64, "items": None}))
    assert log.last["dataset"]["sha256"] == FIRST and log.corrupt == 1
    assert list(log.damaged()) == ["rank 0 says another time what its dataset is"]


@pytest.mark.parametrize("items", [-5, "12", 1.5, True])
def test_a_data_set_of_no_size_is_damage_and_no_traceback(tmp_path: Path, items: Any) -> None:
    log = RankLog(0).take(read(tmp_path, {**DATASET, "items": items}))
    assert log.corrupt == 1 and not log.last
    assert handed_out([log], [], resumed=False, global_batch=4) is None


def test_a_processor_without_a_clock_is_no_traceback(tmp_path: Path) -> None:
    event = {"event": "contention", "others": 0, "stolen": 0.0, "idle": 1.0}
    seen = contention_of([list(read(tmp_path, event, reader=AGENT_EVENTS))])
    assert seen is not None and seen.clock_mhz is None and seen.others == 0.0
