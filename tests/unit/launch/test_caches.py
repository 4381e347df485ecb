"""Caches that a kernel is asked to drop: where it does, and where it does not let this user."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from proofmark.launch.far_end import caches
from proofmark.launch.job import HostLayout, Job, LocalLauncher, caches_cleared_here


@dataclass
class Nothing:
    """A job's spec of which nobody asks anything."""

    def save(self, path: Path) -> None:
        path.write_text("{}")

    def text(self) -> str:
        return "{}"

    def moved(self, layout: HostLayout) -> Nothing:
        return self


def submitted(folder: Path, launcher: LocalLauncher) -> tuple[list[str], dict[str, object]]:
    """What a job's user is told, and what is known of its host, when it has ended."""
    job = Job("a job", "this", Nothing(), folder, [], index=folder / "jobs", sys_path=sys.path)
    handle = launcher.submit(job)
    while handle.status() == "running":
        time.sleep(0.01)
    return handle.news(), handle.facts()


def test_a_kernel_that_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "DROP_CACHES", str(tmp_path / "drop_caches"))
    assert submitted(tmp_path, LocalLauncher()) == ([], {}) and not (tmp_path / "drop_caches").exists()
    assert submitted(tmp_path, LocalLauncher(clear_caches=True)) == ([], {"caches_cleared": True})
    assert (tmp_path / "drop_caches").read_text() == "3"


def test_one_that_does_not_is_told_of_in_a_line_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "DROP_CACHES", str(tmp_path))
    news, facts = submitted(tmp_path, LocalLauncher(clear_caches=True))
    assert len(news) == 1 and "WARNING caches are not cleared (CLEAR_CACHES): " in news[0] and "Is a dir" in news[0]
    assert facts == {"caches_cleared": False}
    assert not caches_cleared_here().cleared
