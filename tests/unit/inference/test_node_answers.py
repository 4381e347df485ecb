"""What a case's agent answers from its host: refused where it is no answer, and its word where it is one."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from proofmark.inference.node import remote
from proofmark.inference.node.answers import FILE, read_node_answer
from proofmark.inference.node.remote import RemoteProcesses
from proofmark.inference.node.spec import CaseSpec
from proofmark.inference.node.worker import WorkerLost
from proofmark.launch.job import Job, Launcher

READY = {"ready": {"device": 3}}
CLOSED = {"closed": {"monitor_failure": None, "lost": "it left"}}
RUBBISH = {
    "{": "not JSON",
    "[]": "should be a valid dictionary",
    '{"ready": {"device": -1}}': "ready.device",
    '{"ready": {"device": "0"}}': "ready.device",
    '{"ready": {}}': "ready.device",
    '{"ready": {"device": 0, "more": 1}}': "ready.more",
    '{"outcome": {"status": "well"}}': "outcome.status",
    '{"lost": {"reason": 7, "detail": null}}': "lost.reason",
    '{"lost": {"reason": "gone"}}': "lost.detail",
    '{"closed": {"monitor_failure": null}}': "closed.lost",
}


@pytest.mark.parametrize("said", RUBBISH)
def test_what_is_no_answer(said: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_node_answer(said.encode())
    assert RUBBISH[said] in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("answer", [READY, CLOSED, {"lost": {"reason": "gone", "detail": "where"}}, {"agent": 1}])
def test_what_is_one(answer: dict[str, Any]) -> None:
    assert read_node_answer(json.dumps(answer).encode()) == answer


class Agent:
    """A job that is submitted, and has answered already."""

    clock_ahead = 0.0
    silent = False

    def __init__(self) -> None:
        self.stopped = 0

    def submit(self, job: Job) -> Agent:
        return self

    def status(self) -> str:
        return "running"

    def news(self) -> list[str]:
        return ["it waits in a queue"]

    def facts(self) -> dict[str, Any]:
        return {}

    def tell(self, line: str) -> None: ...

    def stop(self) -> None:
        self.stopped += 1


def answered(folder: Path, agent: Agent, *lines: str, step_timeout: float | None = None) -> RemoteProcesses:
    """The processes on a host whose agent has said so."""
    (folder / FILE).write_text("".join(f"{line}\n" for line in lines))
    spec = SimpleNamespace(
        directory=str(folder),
        name="inference/tiny",
        config={"host": {"cache_dir": str(folder)}},
        sys_path=(),
        node_directory=lambda _: folder,
        step_timeout=step_timeout,
    )
    return RemoteProcesses(cast(CaseSpec, spec), cast(Launcher, agent))


def test_processes_that_are_ready(tmp_path: Path) -> None:
    messages: list[dict[str, Any]] = []
    there = answered(tmp_path, agent := Agent(), '{"alive": "setup"}', '{"agent": "alive"}', json.dumps(READY))
    assert there.begin(messages.append)["device"] == 3 and not agent.stopped
    assert messages == [{"note": "it waits in a queue"}, {"alive": "setup"}], "an agent's own life is nobody's progress"


@pytest.mark.parametrize("said", RUBBISH)
def test_a_host_that_answers_rubbish_is_let_go_of(tmp_path: Path, said: str) -> None:
    there = answered(tmp_path, agent := Agent(), said, json.dumps(READY))
    with pytest.raises(WorkerLost, match="the case's host sent an invalid answer, and was let go of") as caught:
        there.begin(lambda _: None)
    assert RUBBISH[said] in str(caught.value) and agent.stopped


def test_what_an_agent_has_lost_is_told_as_it_says(tmp_path: Path) -> None:
    there = answered(tmp_path, agent := Agent(), json.dumps({"lost": {"reason": "gone", "detail": "where"}}))
    with pytest.raises(WorkerLost) as caught:
        there.begin(lambda _: None)
    assert (str(caught.value), caught.value.detail) == ("gone", "where") and agent.stopped


def test_an_agent_is_not_given_up_while_its_host_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its launcher waits for the host, and says when that is lost."""
    monkeypatch.setattr(remote, "SILENCE", 0.2)
    there = answered(tmp_path, agent := Agent())
    agent.silent, looks = True, iter(range(20))

    def look() -> list[str]:
        agent.silent = next(looks, None) is not None
        return []

    agent.news = look  # type: ignore[method-assign]
    with pytest.raises(WorkerLost, match=r"the case's agent gave no sign of life"):
        there.run("engine_inference", lambda _: None)
    assert next(looks, None) is None and agent.stopped


class Clock:
    """One that a session which stands still sees jump, once for each of `jumps`, in seconds."""

    def __init__(self, *jumps: float) -> None:
        self._now, self._jumps = 1000.0, list(jumps)

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds + (self._jumps.pop() if self._jumps else 0.0)


def test_a_session_that_stood_still_has_not_listened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its host said meanwhile is not written here by the first look after that."""
    there = answered(tmp_path, agent := Agent(), step_timeout=10.0)
    outcome, looks = {"status": "done", "reason": None, "kind": None, "detail": None}, iter(range(4))

    def look() -> list[str]:
        if next(looks, None) is None:
            (tmp_path / FILE).write_text(json.dumps({"outcome": outcome}) + "\n")
        return []

    agent.news = look  # type: ignore[method-assign]
    monkeypatch.setattr(remote, "time", Clock(200.0))
    assert there.run("engine_inference", lambda _: None)["status"] == "done" and not agent.stopped


def test_an_agent_may_end_after_a_session_stood_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = answered(tmp_path, agent := Agent(), json.dumps(CLOSED))
    states = iter(["running"] * 4)
    agent.status = lambda: next(states, "succeeded")  # type: ignore[method-assign]
    monkeypatch.setattr(remote, "time", Clock(200.0))
    assert there.close().lost == "it left"


def test_a_job_that_goes_on_after_its_last_word_is_not_said_to_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a file system hangs while its agent exits."""
    monkeypatch.setattr(remote, "ENDING", 0.2)
    there = answered(tmp_path, agent := Agent(), json.dumps(CLOSED))
    lost = there.close().lost
    assert lost == "its processes had ended, its job had not a minute later, and was let go of" and agent.stopped


def test_a_host_that_only_says_that_it_is_there_is_let_go_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that one which watches how long a step takes, if it does."""
    for bound in ("STARTING", "CLOSING", "ENDING"):
        monkeypatch.setattr(remote, bound, 0.2)
    there = answered(tmp_path, agent := Agent(), step_timeout=0.1)
    agent.news = lambda: (tmp_path / FILE).open("a").write('{"agent": "alive"}\n') and []  # type: ignore[method-assign]
    with pytest.raises(WorkerLost, match="its processes were not ready 30 min after its host first answered"):
        there.begin(lambda _: None)
    with pytest.raises(WorkerLost, match="it took longer than --step-timeout, its host did not end it"):
        there.run("engine_inference", lambda _: None)
    assert "its host was told to end its processes, did not, and was let go of" in str(there.close().lost)
    assert agent.stopped
