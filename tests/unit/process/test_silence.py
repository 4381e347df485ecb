"""What silence of a case's process is a hang."""

from __future__ import annotations

import json
import os
import threading
import time as clock
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from proofmark.inference.node.worker_main import _Answers
from proofmark.measuring import audible_loader
from proofmark.measuring.audible_loader import AudibleLoader
from proofmark.process.answering import silence
from proofmark.process.answering.answers import read_answer
from proofmark.process.answering.silence import Listener, Patience
from tests.unit.automl.net import Net
from tests.waiting import PATIENCE

FIRST = [torch.zeros(8, 2)]


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(silence, "time", clock)
    return clock


LOADING, WAITING = {"alive": "loading"}, {"alive": "waiting"}
CALLS, SETUP, WARM = {"alive": "calls"}, {"alive": "setup"}, {"phase": "engine warm-up", "step": 1, "steps": 3}


def after(time: Time, *messages: tuple[float, dict[str, Any]]) -> Listener:
    """A listener that has heard messages, each after some seconds of silence."""
    listener = Listener(Patience(hang=30, setup=1800))
    listener.begin()
    for seconds, message in messages:
        time.now += seconds
        listener.hear(message)
    return listener


@pytest.mark.parametrize(
    "messages, limit",
    [
        ([], 1800),
        ([(5, {"note": "x"})], 1800),
        ([(5, WARM)], 1800),
        ([(5, CALLS)], 30),
        ([(5, CALLS), (5, {"phase": "engine round 1/2", "step": 1, "steps": 9})], 30),
        ([(50, {"phase": "training", "step": 1, "steps": 9}), (0, CALLS)], 150),
        ([(5, CALLS), (5, SETUP)], 1800),
        ([(500, CALLS)], 30),
        ([(500, WARM), (20, WARM), (0, CALLS)], 1500),
        ([(5, CALLS), (25, CALLS), (1, CALLS)], 75),
        ([(5, CALLS), (1000, CALLS)], 1800),
        ([(5, SETUP), (1000, CALLS)], 30),
        ([(5, CALLS), (20, LOADING)], 50),
        ([(5, CALLS), (20, LOADING), (20, LOADING), (5, WAITING)], 70),
        ([(5, CALLS), (20, WAITING)], 30),
        ([(5, CALLS), (20, LOADING), (20, CALLS)], 120),
        ([(5, CALLS), (1790, LOADING)], 1800),
        ([(5, LOADING)], 1800),
    ],
)
def test_limit(time: Time, messages: list[tuple[float, dict[str, Any]]], limit: float) -> None:
    assert after(time, *messages).limit == limit


def test_a_sign_ends_the_silence(time: Time) -> None:
    listener = after(time, (5, CALLS))
    time.now += 29
    assert listener.silence == 29
    listener.hear({"phase": "engine round 1/2", "step": 2, "steps": 9})
    assert listener.silence == 0


def test_a_step_begins_with_what_may_take_long_and_remembers_how_long_calls_take(time: Time) -> None:
    listener = after(time, (5, CALLS), (25, CALLS))
    listener.begin()
    assert (listener.silence, listener.limit) == (0, 1800)
    listener.hear(CALLS)
    assert listener.limit == 75


def test_what_was_last_heard_is_told_with_it(time: Time) -> None:
    listener = after(time, (5, CALLS), (1, {"phase": "engine round 1/2", "step": 3, "steps": 9}))
    assert listener.verdict().endswith("(--hang-timeout), last heard of in engine round 1/2: 3/9")
    listener.begin()
    assert listener.verdict().endswith("(--setup-timeout)")


@pytest.mark.parametrize("message, option", [(CALLS, "--hang-timeout"), (SETUP, "--setup-timeout")])
def test_what_is_told_names_the_option(time: Time, message: dict[str, Any], option: str) -> None:
    listener = after(time, (5, message))
    time.now += 42
    assert listener.verdict() == f"gave no sign of life for 42 s and was ended ({option})"


def test_a_loader_is_named_where_its_batch_does_not_come(time: Time) -> None:
    listener = after(time, (5, CALLS), (2, LOADING), (2, WAITING))
    assert listener.verdict().endswith("(--hang-timeout); its data loader gave no batch, and nothing computed for it")
    listener.hear(LOADING)
    time.now += 1800
    assert listener.verdict().endswith("(--hang-timeout); its data loader computed, and gave no batch")
    listener = after(time, (5, CALLS), (1799, LOADING))
    assert listener.verdict().endswith("(--setup-timeout); its data loader computed, and gave no batch")
    listener.hear(CALLS)
    assert listener.verdict().endswith("(--setup-timeout)"), "three times the longest step"
    listener.begin()
    assert "data loader" not in listener.verdict()


class Slow:
    """Data whose items are long in coming, until a file is there: computing, or asleep."""

    identity = None

    def __init__(self, come: Path, computes: bool) -> None:
        self.come, self.computes = come, computes

    def __len__(self) -> int:
        return 2

    def __getitem__(self, item: int) -> int:
        deadline = clock.monotonic() + PATIENCE
        while not self.come.exists() and clock.monotonic() < deadline:
            clock.sleep(0 if self.computes else 0.5)
        return item


def collate(items: list[int]) -> tuple[list[torch.Tensor], torch.Tensor]:
    return [torch.tensor(items)], torch.tensor(items)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("computes, expected", [(True, "loading"), (False, "waiting")])
def test_a_batch_that_lets_wait_is_told_with_whether_anything_works_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, computes: bool, expected: str
) -> None:
    monkeypatch.setattr(audible_loader, "LOOK", 0.05)
    signs: list[str] = []
    come, came = tmp_path / "come", threading.Event()

    def hear(alive: str) -> None:
        signs.append(alive)
        if alive == expected and not come.exists():
            come.touch()
            came.wait(PATIENCE)  # who looks looks no more until it was seen what came then

    loader: Any = DataLoader(Slow(come, computes), batch_size=2, num_workers=workers, collate_fn=collate)  # type: ignore[arg-type]
    audible = AudibleLoader(loader, hear, [torch.zeros(2)])
    batches = iter(audible)
    next(batches)
    assert expected in signs and signs[-1] == "calls"
    came.set()
    before = len(signs)
    clock.sleep(0.2)
    assert len(signs) == before, "nobody waits for a batch"
    assert next(batches, None) is None


def test_nobody_looks_at_a_loader_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audible_loader, "LOOK", 0.01)
    before = set(threading.enumerate())
    audible: Any = AudibleLoader(Net().build_dataloader(None), lambda alive: None, FIRST)
    assert len(list(audible)) == 5
    (watch,) = set(threading.enumerate()) - before
    del audible
    watch.join(timeout=PATIENCE)
    assert not watch.is_alive()


def test_a_loader_gives_a_sign_with_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audible_loader, "LOOK", 3600.0)  # however long a batch is in coming
    signs: list[dict[str, Any]] = []
    loader: DataLoader[Any] = Net().build_dataloader(None)
    audible = AudibleLoader(loader, lambda **message: signs.append(message), FIRST)
    assert len(audible) == 5 and audible.dataset is loader.dataset
    for number, (inputs, _) in enumerate(audible, 1):
        assert len(inputs[0]) == 8 and signs == [CALLS] * number


def test_signs_pass_where_they_turn_and_else_now_and_then(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofmark.inference.node.worker_main.time", time)
    read, write = os.pipe()
    answers, time.now = _Answers(write), 10.0
    for message in (CALLS, CALLS, SETUP, SETUP, LOADING, CALLS):
        answers.progress(**message)
    time.now += 0.6
    answers.progress(**CALLS)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        found = [read_answer(line) for line in stream]
    assert found == [CALLS, SETUP, LOADING, CALLS, CALLS]


def test_a_sign_of_another_kind_is_no_answer() -> None:
    with pytest.raises(ValueError):
        read_answer(json.dumps({"alive": "perhaps"}).encode())
