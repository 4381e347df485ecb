"""A search on a network's file system, which may lose hold of a file for a moment, or for good."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proofmark.automl.logs import trial_log
from proofmark.automl.outcome.trials import trials_of
from proofmark.automl.search import driver, running
from proofmark.automl.search.journal import FILE, read_journal
from proofmark.automl.search.state import State
from proofmark.record.events.log import Event, read_events
from tests.automl.searches import search, settings


def stale(path: Path) -> OSError:
    return OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))


@pytest.fixture
def lose(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, float], None]:
    """Has a trial's log lose its handle so many times, when its outcome is read."""
    monkeypatch.setattr(running, "EVERY", 0.05)

    def begin(trial: int, times: float) -> None:
        left = [times]

        def read(path: Path, *reader: Any) -> Iterator[Event]:
            if path.parts[-3] == f"{trial:05d}" and left[0] > 0:
                left[0] -= 1
                raise stale(path)
            return read_events(path, *reader)

        monkeypatch.setattr(trial_log, "read_events", read)

    return begin


def reasons(state: State) -> list[str]:
    return [str(trial.ended["reason"]) for trial in state.trials.values() if trial.ended and trial.ended["reason"]]


def test_what_can_not_be_read_for_the_terminal_is_not_shown_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(folder: Path) -> Iterator[Event]:
        raise stale(folder)

    monkeypatch.setattr(running, "events_of", unread)
    monkeypatch.setattr(driver, "EVERY", 0.0)
    state = search(tmp_path / "search", settings(3))
    assert state.ended == "3 trials were begun" and not reasons(state)


def test_an_outcome_that_can_not_be_read_at_once_is_read_again(
    tmp_path: Path, lose: Callable[[int, float], None]
) -> None:
    lose(1, running.READINGS - 1)
    state = search(tmp_path / "search", settings(3))
    assert not reasons(state) and state.parents == 3


def test_a_trial_that_hung_has_that_reason_whenever_it_can_be_read(
    tmp_path: Path, lose: Callable[[int, float], None]
) -> None:
    lose(1, running.READINGS - 1)
    # of the two only the one that hangs has so little time: the other gives no sign of life, and may take long
    (reason,) = reasons(search(tmp_path / "search", settings(2, hang=0.5), {1: "hang in a step"}))
    assert reason.startswith("it hung: no sign of life for")


def test_what_can_not_be_read_any_more_is_a_failed_trial(tmp_path: Path, lose: Callable[[int, float], None]) -> None:
    """And no altered one, where it can be read later."""
    folder = tmp_path / "search"
    lose(1, float("inf"))
    state = search(folder, settings(4))
    (reason,) = reasons(state)
    assert reason.startswith("what it left cannot be read: OSError: [Errno 116]") and state.parents == 3
    records = trials_of(read_journal(folder / FILE), folder)
    assert [trial.status for trial in records] == ["finished", "failed", "finished", "finished"]
    assert all(trial.log_intact for trial in records)


def test_a_running_trial_whose_signs_of_life_can_not_be_read_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(process: running.TrialProcess) -> str | None:
        if process.spec.trial == 1:
            raise stale(process.spec.folder)
        return None

    monkeypatch.setattr(running, "EVERY", 0.05)
    monkeypatch.setattr(running.TrialProcess, "_hung", unread)
    (reason,) = reasons(search(tmp_path / "search", settings(3), {1: "hang"}))
    assert reason.startswith("what it left cannot be read: OSError: [Errno 116]")


def test_a_log_that_can_not_be_read_when_the_record_is_made_is_not_said_to_be_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "search"
    search(folder, settings(1))

    def unread(path: Path) -> str | None:
        raise stale(path)

    monkeypatch.setattr("proofmark.automl.outcome.trials.digest_of_log", unread)
    assert [trial.log_intact for trial in trials_of(read_journal(folder / FILE), folder)] == [True]
