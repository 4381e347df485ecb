"""How long a job's nodes get to end after one of them has, without hosts."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.launch.cluster import launcher
from proofmark.launch.cluster.controller import Controller
from proofmark.launch.cluster.launcher import ClusterHandle
from proofmark.launch.cluster.node_logs import NodeLogs
from proofmark.launch.cluster.silences import Silences
from proofmark.launch.job import ENDING
from proofmark.training.job import submit
from tests.waiting import PATIENCE


class Link:
    """A node whose agent has ended with `code`, or ends when it was looked at so often."""

    def __init__(self, code: int | None, looks: int = 0, name: str = "host", node: int = 1) -> None:
        self.name, self._looks = name, looks
        self.connection = SimpleNamespace(lost=None, logs=self, give_up=self._give_up, quiet=None)
        self.report = SimpleNamespace(node=node)
        self.ended, self.incomplete, self.full = code, False, False

    def look(self) -> None:
        self._looks -= 1
        if not self._looks and self.ended is None:
            self.ended = 0

    def _give_up(self, why: str) -> None:
        self.connection.lost = why
        self.ended = 1


def followed(ending: float, monkeypatch: pytest.MonkeyPatch, still: float = 0.0, quiet: float = 0.0) -> str:
    """Of two nodes, of which one has ended and the other does within 300 s; this machine stands still before that, or
    that one is not heard at first."""
    links, now = [Link(None, looks=300), Link(0, node=0)], [0.0]

    async def gone() -> None:
        for link in links:
            link.look()
        now[0] += 1.0 if now[0] else 1.0 + still
        links[0].connection.quiet = "stopped answering" if now[0] < quiet else None

    monkeypatch.setattr(launcher.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(launcher.asyncio, "sleep", lambda _: gone())
    handle: Any = object.__new__(ClusterHandle)
    handle._job, handle._stop = SimpleNamespace(ending=ending), threading.Event()
    handle._file = SimpleNamespace(is_asked_to_stop=lambda: False)
    handle._setup = SimpleNamespace(nodes=SimpleNamespace(gone=gone))
    handle._silences = Silences(300.0, lambda _: None)
    handle._name_the_lost = lambda *_: None
    return str(asyncio.run(handle._follow(links)))


def test_a_node_that_has_more_to_do_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert followed(ENDING, monkeypatch) == "failed"
    assert followed(1000.0, monkeypatch) == "succeeded"


def test_while_this_machine_stands_still_no_node_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they said meanwhile is heard afterwards."""
    assert followed(1000.0, monkeypatch, still=3600.0) == "succeeded"


def test_a_silent_node_is_waited_for_as_long_as_its_silence_may_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have ended long ago."""
    assert followed(100.0, monkeypatch, quiet=280.0) == "succeeded"
    assert followed(100.0, monkeypatch, quiet=50.0) == "failed"


def test_of_a_training_the_first_node_looks_at_the_weights_for_as_long_as_it_may(tmp_path: Path) -> None:
    taken: list[Any] = []
    config = {"suite": "training", "case": "tiny", "host": {"cache_dir": str(tmp_path)}}
    made = SimpleNamespace(config=config, nnodes=2, nproc=8, directory=str(tmp_path), sys_path=(), setup_timeout=900.0)
    submit(made, SimpleNamespace(submit=taken.append))  # type: ignore[arg-type]
    assert taken[0].ending == ENDING + 4 * 900.0


def test_who_is_silent_when_another_fails_is_at_fault() -> None:
    handle: Any = object.__new__(ClusterHandle)
    handle._facts = {"lost": []}
    links: Any = [Link(1), Link(None)]
    links[1].connection.quiet = "stopped answering 12 s ago"
    handle._name_the_lost(links, None)
    assert handle._facts["lost"] == [{"node": 1, "reason": "host: stopped answering 12 s ago"}]


def test_whose_agent_was_killed_is_at_fault() -> None:
    """Its ranks go with it and can't say so, and those of others fail over that."""
    handle: Any = object.__new__(ClusterHandle)
    handle._facts = {"lost": []}
    links: Any = [Link(1, node=0), Link(-9)]
    handle._name_the_lost(links, None)
    assert handle._facts["lost"] == [{"node": 1, "reason": "host: its agent died of signal 9 (SIGKILL)"}]


def test_a_user_is_told_once_of_a_silence_and_of_its_end() -> None:
    told: list[str] = []
    silences, links = Silences(300.0, told.append), [Link(None, name="a", node=0), Link(None, name="b")]

    def look(quiet: str | None) -> bool:
        links[1].connection.quiet = quiet
        silences.look(links)  # type: ignore[arg-type]
        return bool(silences)

    assert [look(quiet) for quiet in (None, "stopped answering 8 s ago", "stopped answering 9 s ago", None)] == [
        False,
        True,
        True,
        False,
    ]
    assert told == ["b stopped answering 8 s ago: it is waited for, 300 s, `silence_timeout`", "b answers again"]


def test_of_two_hosts_behind_one_address_one_is_silent() -> None:
    told: list[str] = []
    silences, links = Silences(300.0, told.append), [Link(None, name="gate", node=0), Link(None, name="gate")]
    links[0].connection.quiet = "stopped answering 8 s ago"
    for _ in range(3):
        silences.look(links)  # type: ignore[arg-type]
    assert len(told) == 1 and silences


def test_of_a_host_that_is_lost_nobody_says_that_it_is_back() -> None:
    told: list[str] = []
    silences, link = Silences(300.0, told.append), Link(None)
    for quiet, lost in (("stopped answering 8 s ago", None), (None, "stopped answering 305 s ago")):
        link.connection.quiet, link.connection.lost = quiet, lost
        silences.look([link])  # type: ignore[list-item]
    assert len(told) == 1 and not silences


@pytest.mark.parametrize(
    "answer, expected",
    [
        ({"sizes": {}, "unsent": ""}, None),
        ({"sizes": {}, "unsent": "engine-1/lib.so"}, "host: not sent, as links or for their names: engine-1/lib.so"),
        ({"sizes": {"model.onnx": 7}, "unsent": "engine-1/lib.so"}, "host: model.onnx has not come home whole"),
    ],
)
def test_what_does_not_come_home_is_told(tmp_path: Path, answer: dict[str, Any], expected: str | None) -> None:
    async def ask(*_: object, **__: object) -> dict[str, Any]:
        return answer

    handle: Any = object.__new__(ClusterHandle)
    handle._links = [SimpleNamespace(name="host", connection=SimpleNamespace(logs=NodeLogs(tmp_path), ask=ask))]
    assert asyncio.run(handle._fetch(["*.onnx", "engine-*"])) == expected


def test_a_job_is_stopped_by_its_id_while_files_come_home() -> None:
    """Their fetching may take an hour, and ends as its host is let go of."""
    handle: Any = object.__new__(ClusterHandle)
    handle._job, handle._stop, handle._facts = SimpleNamespace(held=True), threading.Event(), {"lost": []}
    handle._file = SimpleNamespace(id="64e0af1b3558", is_asked_to_stop=lambda: True)
    asyncio.run(asyncio.wait_for(handle._hold("succeeded"), PATIENCE))
    assert handle._facts["lost"] == [{"node": None, "reason": "job 64e0af1b3558 was stopped by its id"}]


def test_an_interrupt_while_files_come_home_ends_their_fetching(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold up whatever else a host is told, for as long as it takes."""
    begun, ended = threading.Event(), threading.Event()

    async def fetch(_: object) -> None:
        begun.set()
        try:
            await asyncio.sleep(1000)
        finally:
            ended.set()

    def interrupted(_: object) -> None:
        begun.wait(PATIENCE)
        raise KeyboardInterrupt

    handle: Any = object.__new__(ClusterHandle)
    handle._controller, handle._fetch = Controller(), fetch
    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        handle.fetch(("*.onnx",))
    assert ended.wait(PATIENCE)
    handle._controller.close()
