"""How long a run of a training may take, and what is told of one that is interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.training import run
from proofmark.training.run import ScaleRun, TrainingOptions

DAY = 86400.0


def training_of(folder: Path, profile: str = "embedded", timeout: float | None = None) -> Any:
    """A training without a case, with what it has written and told."""
    training: Any = object.__new__(ScaleRun)
    training.run_dir, training.config = folder, SimpleNamespace(profile=profile)
    training.written, training.told = [], []
    training._log = SimpleNamespace(
        write=lambda kind, **fields: training.written.append((kind, json.loads(json.dumps(fields))))
    )
    training._launcher, training._imports, training._on_progress = None, (), training.told.append
    training._options = TrainingOptions(timeout)
    training._spec = lambda *_: SimpleNamespace(seed=0, resume_from=None)
    return training


def limit_of(folder: Path, monkeypatch: pytest.MonkeyPatch, profile: str, timeout: float | None) -> float:
    """The seconds after which a run of a profile is ended."""
    limits: list[float] = []
    handle = SimpleNamespace(stop=lambda: None, facts=dict, news=list, left="")
    monkeypatch.setattr(run, "submit", lambda *_: handle)
    monkeypatch.setattr(run, "follow", lambda _, spec, limit, *__: limits.append(limit) or {"status": "succeeded"})
    assert training_of(folder, profile, timeout)._round(1)
    return limits[0]


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("stop", [lambda: None, interrupt], ids=["once", "twice"])
def test_what_is_left_of_an_interrupted_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: Callable[[], None]
) -> None:
    """Its verdict says only that it was interrupted. After a second interrupt its processes may still write."""
    lost = [{"node": None, "reason": "it may still run"}]
    news = ["WARNING it may still run"]
    handle = SimpleNamespace(stop=stop, facts=lambda: {"lost": lost}, news=lambda: news, left="")
    monkeypatch.setattr(run, "submit", lambda *_: handle)
    monkeypatch.setattr(run, "follow", interrupt)
    training = training_of(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        training._round(1)
    assert training.told == [{"note": "WARNING it may still run"}]
    assert [kind for kind, _ in training.written] == ["round_begin", "interrupted", "round_end"]
    end = training.written[-1][1]
    assert end["lost"] == lost and ("logs" in end) == (stop is not interrupt)


@pytest.mark.parametrize(
    "profile, timeout, expected",
    [("embedded", None, DAY), ("standard", None, 30 * DAY), ("standard", 60.0, 60.0), ("embedded", 2 * DAY, 2 * DAY)],
)
def test_the_published_size_may_take_weeks_unless_a_user_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, timeout: float | None, expected: float
) -> None:
    assert limit_of(tmp_path, monkeypatch, profile, timeout) == expected
