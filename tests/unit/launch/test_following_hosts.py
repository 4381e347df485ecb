"""How long a job's nodes get to end after one of them has, without hosts."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.launch.cluster import launcher
from proofmark.launch.cluster.launcher import ClusterHandle
from proofmark.launch.job import ENDING
from proofmark.training.job import submit


class Link:
    """A node whose agent has ended with `code`, or ends when it was looked at so often."""

    def __init__(self, code: int | None, looks: int = 0) -> None:
        self.name, self._looks = "host", looks
        self.connection = SimpleNamespace(lost=None, logs=self, give_up=self._give_up)
        self.ended, self.incomplete, self.full = code, False, False

    def look(self) -> None:
        self._looks -= 1
        if not self._looks and self.ended is None:
            self.ended = 0

    def _give_up(self, why: str) -> None:
        self.connection.lost = why
        self.ended = 1


def followed(ending: float, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of two nodes, of which one has ended and the other does within some seconds."""
    links, now = [Link(None, looks=30), Link(0)], [0.0]

    async def gone() -> None:
        for link in links:
            link.look()
        now[0] += 10.0

    monkeypatch.setattr(launcher.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(launcher.asyncio, "sleep", lambda _: gone())
    handle: Any = object.__new__(ClusterHandle)
    handle._job, handle._stop = SimpleNamespace(ending=ending), threading.Event()
    handle._file = SimpleNamespace(is_asked_to_stop=lambda: False)
    handle._setup = SimpleNamespace(nodes=SimpleNamespace(gone=gone))
    handle._name_the_lost = lambda *_: None
    return str(asyncio.run(handle._follow(links)))


def test_a_node_that_has_more_to_do_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert followed(ENDING, monkeypatch) == "failed"
    assert followed(1000.0, monkeypatch) == "succeeded"


def test_of_a_training_the_first_node_looks_at_the_weights_for_as_long_as_it_may(tmp_path: Path) -> None:
    taken: list[Any] = []
    config = {"suite": "training", "case": "tiny", "host": {"cache_dir": str(tmp_path)}}
    made = SimpleNamespace(config=config, nnodes=2, nproc=8, directory=str(tmp_path), sys_path=(), setup_timeout=900.0)
    submit(made, SimpleNamespace(submit=taken.append))  # type: ignore[arg-type]
    assert taken[0].ending == ENDING + 900.0
