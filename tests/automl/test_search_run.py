"""A search as a session runs it: what its own log says of it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from proofmark.automl.outcome.verdict import judge
from proofmark.automl.places import places_here, places_of_tasks
from proofmark.automl.run import SearchOptions, SearchRun
from proofmark.automl.search.journal import FILE
from proofmark.automl.search.settings import SearchSettings
from proofmark.automl.trial.spec import HELD_OUT
from proofmark.errors import ProofmarkError
from proofmark.record.events.log import read_events
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import HostSettings, resolve
from proofmark.vendor.registry import find_vendor
from suites.automl import test_image_search
from tests.automl.automl_records import record, trial
from tests.automl.searches import ROOT


def run_in(folder: Path, resume: Path | None = None) -> SearchRun:
    """One of the suite's own case, not begun."""
    path, case = ROOT / "suites/automl/image_search.yaml", test_image_search.TestImageSearch
    file = load_case_file(path, "automl", "embedded", case.common_file, case.parameters_type)
    host = HostSettings(None, None, str(folder / "cache"), None, None)
    found = find_vendor("cpu", ROOT / "vendors")
    resolution = resolve(file, "cpu", [], None, host)
    return SearchRun(
        resolution, found, case, folder, places_here(found, 1), SearchOptions(resume=resume), lambda _: None
    )


def fail_with(run: SearchRun, monkeypatch: pytest.MonkeyPatch, error: Exception) -> str:
    """What its log says of a search that breaks off."""

    def drive(*_: Any) -> None:
        raise error

    monkeypatch.setattr(run, "_drive", drive)
    run.search()
    (failed,) = (event for event in read_events(run.run_dir / "events.jsonl") if event["event"] == "search_failed")
    return str(failed["reason"])


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(), "OSError: "),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (ProofmarkError("no network can be made\nof this"), "no network can be made"),
    ],
)
def test_whatever_breaks_it_off_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, expected: str
) -> None:
    assert fail_with(run_in(tmp_path), monkeypatch, error) == expected


@pytest.mark.parametrize("here", [True, False])
def test_trials_of_this_machine_tell_one_another_what_data_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    """But not who judges them, nor one of another machine, nor any of another session."""
    run = run_in(tmp_path)
    run._places = replace(run._places, here=here)
    left = tmp_path / "search/listings"
    left.mkdir(parents=True)
    (left / "train.images").touch()
    given: dict[str, Any] = {"graph": {}, "parent": None, "hyperparameters": {}, "epochs": 1, "patience": None}

    def drive(*_: Any) -> None:
        assert list(left.iterdir()) == []
        specs = [run._spec(tmp_path, trial=0, seed=0, **given, **split) for split in ({}, {"split": HELD_OUT})]
        assert [spec.config["host"]["listings"] for spec in specs] == [str(left) if here else None, None]
        assert run.config.host.listings is None

    monkeypatch.setattr(run, "_drive", drive)
    run.search()
    assert not left.exists()


def test_a_search_is_told_how_many_networks_it_begins_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[int]()

    def of(config: Any, places: Any, networks: int, *_: Any) -> None:
        told.append(networks)
        raise ProofmarkError("that is all that is looked at")

    monkeypatch.setattr(SearchSettings, "of", of)
    run = run_in(tmp_path)
    monkeypatch.setattr(run, "_seeds", lambda _: [None] * 3)
    run.search()
    assert told == [3]


def test_others_are_all_that_it_has_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search is driven by its session, whose parent has started others too."""
    roots = set[int]()

    def tree(root: int) -> set[int]:
        roots.add(root)
        return set()

    monkeypatch.setattr("proofmark.monitoring.contention._tree", tree)
    fail_with(run_in(tmp_path), monkeypatch, OSError())
    assert roots == {os.getpid()}


@pytest.mark.parametrize("ours", [True, False])
def test_its_log_and_its_record_say_whether_its_trials_are_among_others(tmp_path: Path, ours: bool) -> None:
    """They are what a cluster runs that it did not start."""
    run, cluster = run_in(tmp_path), MagicMock(ours=ours)
    cluster.places.return_value = 1
    run._places = places_of_tasks(cluster, run._found, 1)
    assert run.so_far().trials_among_others == (not ours)


@pytest.mark.parametrize(
    ("changed", "to_go_on"),
    [
        ({"held_out_accuracy": 0.69}, False),
        ({"trials": (trial(0, status="failed", accuracy=None, reason="it died"),), "examined": None}, False),
        ({"ended": False, "faults": ("event 3, trial_end, does not follow the one before it: it was edited",)}, False),
        ({"ended": False, "interrupted": "the search"}, True),
        ({"held_out_accuracy": None, "held_out_reason": "it hung"}, True),
        ({"examined": 1}, True),
        ({"end_reason": "3 trials in a row have failed, the last one: it hung"}, True),
    ],
    ids=["judged", "none is good", "edited", "interrupted", "not judged", "another one judged", "gave up"],
)
@pytest.mark.parametrize("resumed", [False, True])
def test_going_on_is_advised_where_there_is_something_to_do(
    tmp_path: Path, changed: dict[str, Any], to_go_on: bool, resumed: bool
) -> None:
    """What `--resume` refuses is not the way on. The journal of a search that was resumed is in an earlier session."""
    earlier = tmp_path / "earlier/search"
    run = run_in(tmp_path, earlier if resumed else None)
    journal = run._folder() / FILE
    journal.parent.mkdir(parents=True, exist_ok=True)
    journal.touch()
    found = record(journal=str(journal), **changed)
    (kept,) = run._kept(found.model_copy(update={"verdict": judge(found)}))
    assert ("--resume" in kept.what) == to_go_on
    assert kept.path == (str(earlier) if resumed else "search")


def test_a_session_that_was_interrupted_before_it_went_on_with_a_search_leads_to_none(tmp_path: Path) -> None:
    """Its log does not name that search, so `--resume` would find none there."""
    earlier = tmp_path / "earlier/search"
    for folder in (earlier, tmp_path / "later"):
        folder.mkdir(parents=True)
    (earlier / FILE).touch()
    run = run_in(tmp_path / "later", earlier)
    run.interrupted = True
    assert not run.finish().kept
