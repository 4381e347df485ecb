"""What a trial leaves in its folder once its processes have ended."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.automl.search.running import tidy_up


@pytest.fixture
def spec(tmp_path: Path) -> Any:
    """Of a trial that left a log, a sign of life and an empty file."""
    folder = tmp_path / "noderank0"
    folder.mkdir()
    (folder / "trial.jsonl").write_text("{}\n")
    (folder / "rank0.heartbeat").write_text("{}")
    (folder / "agent.log").touch()
    return SimpleNamespace(directory=str(tmp_path), folder=folder, own_directories=[])


def left(spec: Any) -> list[str]:
    return sorted(path.name for path in spec.folder.iterdir())


def test_what_was_said_stays(spec: Any) -> None:
    tidy_up(spec)
    assert left(spec) == ["trial.jsonl"]


def test_a_directory_is_no_empty_file(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems give an empty one no bytes."""
    (spec.folder / "own").mkdir()
    monkeypatch.setattr(
        Path, "lstat", lambda self: SimpleNamespace(st_size=0 if self.name in ("own", "agent.log") else 3)
    )
    tidy_up(spec)
    assert left(spec) == ["own", "trial.jsonl"]


@pytest.mark.parametrize("gone", ["lstat", "unlink"])
def test_what_others_remove_at_the_same_time_is_gone(spec: Any, gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = getattr(Path, gone)

    def after_others(path: Path, *args: Any, **keywords: Any) -> Any:
        if path.parent == spec.folder and path.name in ("agent.log", "rank0.heartbeat") and path.exists():
            path.rename(path.parent.parent / path.name)
        return real(path, *args, **keywords)

    monkeypatch.setattr(Path, gone, after_others)
    tidy_up(spec)
    assert left(spec) == ["trial.jsonl"]
