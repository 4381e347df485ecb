"""No two sessions write into one folder."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.sessions.parallel import pytest_configure
from fixtures.sessions.session import RUN_DIR, make_run_dir
from fixtures.settings import SETTINGS


def config(results: Path) -> Any:
    stash = {SETTINGS: SimpleNamespace(results_dir=results)}
    return SimpleNamespace(stash=stash)


def test_sessions_of_one_second_have_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fixtures.sessions.session._point_latest_to", lambda run_dir: None)
    sessions = [config(tmp_path / "results") for _ in range(16)]
    with ThreadPoolExecutor(16) as threads:
        made = list(threads.map(make_run_dir, sessions))
    assert len(set(made)) == 16 and all(folder.is_dir() for folder in made)
    assert all(make_run_dir(each) == folder for each, folder in zip(sessions, made, strict=True))


def test_a_parallel_session_has_a_name_of_its_own_before_it_has_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fixtures.sessions.parallel._Controller", lambda config: None)
    names = set()
    for process in (17, 18):
        monkeypatch.setattr("os.getpid", lambda process=process: process)
        controller = config(tmp_path)
        controller.option = SimpleNamespace(numprocesses=2, tx=["popen"], dist="load")
        controller.pluginmanager = SimpleNamespace(register=lambda *given: None, hasplugin=lambda name: True)
        pytest_configure(controller)
        names.add(controller.stash[RUN_DIR])
    assert len(names) == 2
