"""How long a run of a training may take."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.training import run
from proofmark.training.run import ScaleRun, TrainingOptions

DAY = 86400.0


def limit_of(folder: Path, monkeypatch: pytest.MonkeyPatch, profile: str, timeout: float | None) -> float:
    """The seconds after which a run of a profile is ended."""
    limits: list[float] = []
    handle = SimpleNamespace(stop=lambda: None, facts=dict)
    monkeypatch.setattr(run, "submit", lambda *_: handle)
    monkeypatch.setattr(run, "follow", lambda _, spec, limit, *__: limits.append(limit) or {"status": "succeeded"})
    training: Any = object.__new__(ScaleRun)
    training.run_dir, training.config = folder, SimpleNamespace(profile=profile)
    training._log = SimpleNamespace(write=lambda *_, **fields: json.dumps(fields))
    training._launcher, training._imports, training._on_progress = None, (), None
    training._options = TrainingOptions(timeout)
    training._spec = lambda *_: SimpleNamespace(seed=0, resume_from=None)
    assert training._round(1)
    return limits[0]


@pytest.mark.parametrize(
    "profile, timeout, expected",
    [("embedded", None, DAY), ("standard", None, 30 * DAY), ("standard", 60.0, 60.0), ("embedded", 2 * DAY, 2 * DAY)],
)
def test_the_published_size_may_take_weeks_unless_a_user_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, timeout: float | None, expected: float
) -> None:
    assert limit_of(tmp_path, monkeypatch, profile, timeout) == expected
