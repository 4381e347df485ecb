"""What is told of a search that goes on: how far it has come, whether it is honest, and never that it is valid."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from fixtures.cases.suites import SUITES
from fixtures.live import page
from fixtures.live.progress import TELL
from fixtures.outputs.reporting import RECORDS
from fixtures.sessions.session import RUN_DIR
from proofmark.automl.outcome.figures import figures
from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.automl.outcome.trials import Trials
from proofmark.automl.outcome.unfinished import judged_so_far
from proofmark.automl.search.driver import Progress
from proofmark.automl.search.journal import FILE, read_journal
from proofmark.automl.search.state import State, Trial, left_of
from proofmark.automl.search.telling import Telling
from proofmark.automl.trial.spec import LOG
from proofmark.record.events.log import Event
from suites.automl.report.tree import _shown, placed
from suites.automl.report.view import SearchView
from tests.automl.automl_records import record, trial
from tests.automl.searches import search, settings
from tests.suites_there import SUITES as ALL
from tests.suites_there import page_of
from tests.waiting import PATIENCE


def going_on(*trials: Any, **changes: Any) -> AutoMLRecord:
    running = trial(1, status="running", accuracy=None, ended=None, counted=None, dtypes=())
    seen = record(*(trials or (trial(0), running)), as_of=60.0, ended=False, held_out_accuracy=None, **changes)
    return seen.model_copy(update={"verdict": judged_so_far(seen)}).with_figures(figures(seen))


def test_a_search_that_goes_on_is_no_result() -> None:
    seen = going_on()
    assert seen.verdict is not None and seen.verdict.kind == "INSUFFICIENT"
    (reason,) = seen.verdict.reasons
    assert reason.startswith("unfinished: the search goes on since 1970-01-01 00:00:00 UTC; this is how it was at")
    shown = {figure.key: figure for figure in seen.figures}
    assert shown["trials"].value == "1 finished, 1 running" and shown["rankable"].value == "no"
    html = page_of([seen])
    assert "The search goes on since 1970-01-01" in html and "known in the end" in html and "so far" in html
    assert "has no end" not in html


def test_what_is_dishonest_is_told_while_it_goes_on() -> None:
    seen = going_on(trial(0, counted=(1, 2)))
    assert seen.verdict is not None and seen.verdict.kind == "FAIL_HONESTY"
    assert "trial 0 is credited" in seen.verdict.reasons[1]
    html = page_of([seen])
    assert html.count('data-name="time, s">withheld: FAIL_HONESTY</td>') == len(seen.trials) == 1


def test_a_trial_that_runs_counts_as_far_as_it_has_come(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    search(folder, settings(3))
    events = list(read_journal(folder / FILE))
    (last,) = (event for event in events if event["event"] == "trial_end" and event["trial"] == 2)
    trials = Trials(folder)
    for event in events[: events.index(last)]:
        trials.take(event)
    assert [each.status for each in trials.records()] == ["finished", "finished", "none"]
    trials.look(last["clock"])
    seen = trials.records()[2]
    assert seen.status == "running" and seen.accuracy is None and seen.ended == trials.since.seconds
    assert [each.images for each in seen.epochs] == [each["images"] for each in last["epochs"]]


@pytest.mark.parametrize("ahead", [7_000.0, -20.0])
def test_a_trial_that_runs_on_another_host_is_told_by_this_ones_clock(tmp_path: Path, ahead: float) -> None:
    """Whose monotonic clock is another, while both know what time it is."""
    folder = tmp_path / "search"
    search(folder, settings(1))
    *before, end, _ = read_journal(folder / FILE)
    log = left_of(folder, before[-1]) / LOG
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for event in events:
        event |= {"time": before[-1]["time"] + 1.0, "clock": event["clock"] + round(ahead * 1e9)}
    log.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    trials = Trials(folder)
    for event in before:
        trials.take(event)
    trials.look(end["clock"])
    assert all(0 < epoch.ended < 1_000 for epoch in trials.records()[0].epochs)


def test_the_page_is_written_while_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "FIRST", 0.01)
    monkeypatch.setattr(page, "EVERY", 0.01)
    reports: list[Any] = []
    stash = {RECORDS: [(record(case="before"), tmp_path)], RUN_DIR: tmp_path, SUITES: ALL}
    config: Any = SimpleNamespace(stash=stash | {TELL: lambda *report: reports.append(report)})
    written = threading.Event()
    problems: list[Callable[[], AutoMLRecord]] = [_full, _torn, _torn]

    def so_far() -> AutoMLRecord:
        if problems:
            problems.pop()()
        if (tmp_path / "report.html").exists():
            written.set()
        return going_on()

    with page.live_page(config, "after", so_far):
        assert written.wait(PATIENCE)
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "automl/<wbr>before" in html and "unfinished" in html and 'http-equiv="refresh"' in html
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert reports == [("after", {"note": "report.html is not up to date: KeyError: 'clock'"})], "once"
    assert "live page" not in [thread.name for thread in threading.enumerate()]


def _full() -> AutoMLRecord:
    raise OSError("no space left on device")


def _torn() -> AutoMLRecord:
    raise KeyError("clock")


def test_progress_says_all_that_is_asked_for(tmp_path: Path) -> None:
    state = search(tmp_path / "search", settings(3), {1: "nan"})
    reports: list[dict[str, Any]] = []
    telling = Telling(reports.append, "top1", settings(5, most_seconds=100.0))
    runs = {"clock": 0, "images": 10, "evaluated": 0, "accuracy": None, "loss": None, "seconds": 1.0}
    for _ in range(2):
        telling(Progress(60.0, 1, 2, 1, 5, state, {2: [runs]}, lost=1))
    notes = [report["note"] for report in reports if "note" in report]
    assert [note.partition(":")[0] for note in notes] == [
        f"trial {n}, {made}"
        for n, made in ((0, "seed, 1 epochs"), (1, "deeper of 0, 0 epochs"), (2, "deeper of 0, 2 epochs"))
    ]
    figures_ = reports[-1]
    assert (figures_["step"], figures_["steps"], figures_["left_at_most"]) == (3, 5, 40.0)
    assert figures_["left"] == 60 / 6 * (9 - 6), "five and one of nine epochs are done, the first trial has one"
    assert figures_["also"][:2] == ["1 running, 2 done, 1 failed", "best error 48.00%"]
    assert figures_["also"][2].startswith("score ") and figures_["also"][3] == "devices lost: 1"


def test_what_ended_in_an_earlier_session_counts_and_is_not_told_again(tmp_path: Path) -> None:
    search(tmp_path / "search", settings(5), dict.fromkeys((1, 2, 3), "crash"))
    reports: list[dict[str, Any]] = []
    search(tmp_path / "search", settings(5), tell=Telling(reports.append, "top1", settings(5)))
    notes = [report["note"] for report in reports if "note" in report]
    assert [note.partition(",")[0] for note in notes] == ["trial 4"]
    assert reports[-1]["left"] == 0.0 and reports[-1]["step"] == 5


def test_the_time_left_of_a_search_that_goes_on_with_more_places_is_of_its_own_rounds(tmp_path: Path) -> None:
    state = search(tmp_path / "search", settings(4))
    reports: list[dict[str, Any]] = []
    Telling(reports.append, "top1", settings(12, devices=4))(Progress(60.0, 0, 4, 0, 12, state, {}))
    trained = [settings(1).epochs_of(number) for number in range(4)]
    assert reports[-1]["left"] == 60 / sum(trained) * 8 * trained[3], "none of them is of an earlier round"


def test_a_state_counts_as_it_goes() -> None:
    begun: Event = {"event": "trial_begin", "trial": 0, "attempt": 1, "round": 0, "parent": None, "study": 0}
    begun |= {"per_image": {"training": 3, "forward": 1}}
    ended = {"status": "failed", "accuracy": None, "epochs": [{"images": 10, "evaluated": 2}]}
    state = State()
    state.put(Trial(begun))
    assert [each.number for each in state.open()] == [0] and not state.over
    state.put(Trial(begun, ended))
    assert not state.open() and state.flops == 0 and [each.number for each in state.without_result()] == [0]
    assert state.best() is None
    state.put(Trial(begun | {"trial": 1}, ended | {"status": "finished", "accuracy": 0.5}))
    state.put(Trial(begun | {"trial": 2}, ended | {"status": "finished", "accuracy": 0.5}))
    best = state.best()
    assert best is not None and best.number == 1 and state.flops == 64
    assert Trial(begun, ended) == Trial(dict(begun), dict(ended)) != Trial(begun)


def test_of_many_trials_the_best_are_drawn_with_all_that_they_come_from() -> None:
    trials = [trial(number, accuracy=number / 300, parent=number - 1 if number % 10 else None) for number in range(300)]
    shown = {each.number for each in _shown(trials)}
    assert shown == set(range(200, 300)) == {number for number in shown if number % 10 == 0 or number - 1 in shown}
    assert _shown(trials[:5]) == trials[:5]
    rows = SearchView(record(*[trial(number, accuracy=number % 7 / 10) for number in range(1500)])).rows
    assert len(rows) <= 1000 and {each.number for each in rows} >= {6, 13, *range(1000, 1500)}


def test_hyper_parameters_that_nobody_knows_are_shown_all_the_same() -> None:
    """And what is no number is no record."""
    unknown = trial(0, hyperparameters={"kernel_size": None, "dropout": None})
    assert SearchView(record(unknown)).hyperparameters(unknown) == "kernel None, batch None, dropout 0.00"
    with pytest.raises(ValidationError):
        trial(0, hyperparameters={"dropout": []})


def test_a_network_that_was_made_of_none_before_it_has_a_place() -> None:
    """A record may say what can't be: that one was made of itself, or of a later one, which was made of it."""
    places = placed([trial(number, parent=parent) for number, parent in ((0, None), (1, 1), (2, 3), (3, 2), (4, 0))])
    assert places.keys() == {0, 1, 2, 3, 4} and places[0][1] < places[4][1]
    assert places[1][1] == places[2][1] == places[0][1] < places[3][1]
