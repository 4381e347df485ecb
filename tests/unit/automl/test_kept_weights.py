"""Weights of a search's trials: there as long as a network may be made of them, and no longer."""

from __future__ import annotations

import errno
import os
import random
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from proofmark.automl.pool import MOST, best_and_last
from proofmark.automl.search.state import NODE, State, Trial
from proofmark.automl.search.weights import KeptWeights
from proofmark.automl.trial.spec import MOMENTUM, WEIGHTS

WAITING = 3
"""Networks that wait for their trials, where one trial runs at a time."""


def begun(number: int, parent: int | None = None, attempt: int = 1) -> Trial:
    per_image = {"training": 3, "forward": 1}
    fields = {"trial": number, "attempt": attempt, "round": 0, "parent": parent, "study": number}
    return Trial(fields | {"per_image": per_image})


def ended(trial: Trial, folder: Path, accuracy: float | None) -> Trial:
    """It leaves weights."""
    left = trial.left(folder)
    left.mkdir(parents=True)
    for name in (WEIGHTS, MOMENTUM):
        (left / name).touch()
    status = "failed" if accuracy is None else "finished"
    return trial.end({"status": status, "accuracy": accuracy, "epochs": []})


def there(folder: Path) -> set[int]:
    trials = folder / "trials"
    names = [name for name in os.listdir(trials) if os.path.exists(f"{trials}/{name}/{NODE}/{WEIGHTS}")]
    return {int(name.partition(".")[0]) for name in names}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofmark.automl.search.weights.MOST", 6)


@pytest.mark.usefixtures("few")
def test_whatever_may_become_a_parent_has_weights_and_few_others_have(tmp_path: Path) -> None:
    """Networks wait as long as they may, and are made of any of the best and the last trials."""
    chance, state = random.Random(0), State()
    kept, finished, waiting = KeptWeights(tmp_path, state, 1), list[Trial](), deque[int]()
    for number in range(300):
        parent = waiting.popleft() if len(waiting) >= WAITING else None
        trial = begun(number, parent)
        kept.begun(trial)
        trial = ended(trial, tmp_path, None if chance.random() < 0.2 else chance.random() // 0.1 / 10)
        assert parent is None or parent in there(tmp_path), "its child may be run again"
        kept.ended(trial)
        finished += [trial] if trial.accuracy is not None else []
        pool = [finished[place].number for place in best_and_last([each.accuracy or 0.0 for each in finished], 6)]
        left = there(tmp_path)
        assert set(pool) <= left and len(left) <= 6 + 3 + 2 * WAITING + 1
        waiting += [chance.choice(pool)] if pool and len(waiting) < WAITING else []
    assert not list(tmp_path.rglob(MOMENTUM))[len(there(tmp_path)) :]


@pytest.mark.usefixtures("few")
def test_of_equals_the_first_that_was_begun_is_kept_to_be_judged(tmp_path: Path) -> None:
    """Though it ended after many others."""
    state = State()
    kept, trials = KeptWeights(tmp_path, state, 8), [begun(number) for number in range(40)]
    for trial in trials:
        kept.begun(trial)
    for trial in [*trials[1:20], trials[0], *trials[20:]]:
        over = ended(trial, tmp_path, 0.5)
        kept.ended(over)
        state.put(over)
    best = state.best()
    assert best is not None and best.number == 0 and 0 in there(tmp_path)


@pytest.mark.usefixtures("few")
def test_another_driver_keeps_the_parents_of_trials_that_it_runs_again(tmp_path: Path) -> None:
    state = State()
    parent = ended(begun(0), tmp_path, 0.1)
    state.put(parent)
    child = begun(1, 0)
    state.put(child)
    for number in range(2, 12):
        state.put(ended(begun(number), tmp_path, 0.5))
    kept = KeptWeights(tmp_path, state, 1)
    again = begun(1, 0, attempt=2)
    kept.begun(again)
    for number in range(12, 12 + 2 * WAITING):
        kept.begun(begun(number))
        kept.ended(ended(begun(number), tmp_path, 0.5))
        assert 0 in there(tmp_path)
    kept.ended(ended(again, tmp_path, 0.2))
    for number in range(20, 20 + 2 * WAITING):
        kept.begun(begun(number))
        kept.ended(ended(begun(number), tmp_path, 0.5))
    assert 0 not in there(tmp_path)


def test_a_search_of_few_trials_keeps_all_weights(tmp_path: Path) -> None:
    kept = KeptWeights(tmp_path, State(), 1)
    for number in range(MOST):
        kept.begun(begun(number))
        kept.ended(ended(begun(number), tmp_path, number / MOST))
    assert there(tmp_path) == set(range(MOST))


def test_what_nobody_wrote_is_not_missed(tmp_path: Path) -> None:
    trial: Any = begun(0).end({"status": "failed", "accuracy": None, "epochs": []})
    KeptWeights(tmp_path, State(), 1).ended(trial)


def test_what_cannot_be_deleted_ends_no_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a network's file system has lost hold of a trial's folder."""
    trial = ended(begun(0), tmp_path, None)

    def stale(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))

    kept = KeptWeights(tmp_path, State(), 1)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", stale)
        kept.ended(trial)
    assert there(tmp_path) == {0}
