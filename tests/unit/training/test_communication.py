"""The share of compute that goes to the other ranks: two processes, of which one keeps the other waiting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from proofmark.training.logs.ranks.rank_figures import figures_of
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.ranks.communication import CommunicationMeter
from proofmark.training.ranks.model.strategy import Place
from tests.unit.training.communicating import SLEEP, WAYS
from tests.unit.training.torchrun import ran_on

pytestmark = pytest.mark.quiet


@pytest.fixture(scope="module")
def communicated(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """What each of two ranks measured, in each of the ways."""
    folder = tmp_path_factory.mktemp("communicated")
    ran = ran_on(2, "tests.unit.training.communicating", str(folder))
    assert ran.returncode == 0, ran.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("way", range(len(WAYS)), ids=map("-".join, WAYS))
def test_who_waits_says_so_and_who_is_waited_for_does_not(communicated: list[list[dict[str, Any]]], way: int) -> None:
    ranks = [rank[way] for rank in communicated]
    assert [rank["hooks"] for rank in ranks] == [0, 0], "nothing is left in the model"
    waiting, late = (rank["totals"] for rank in ranks)
    for rank in (waiting, late):
        assert (rank["steps"], rank["reason"]) == (1, None) and 0 < rank["seconds"] < rank["of"]
    assert waiting["seconds"] > SLEEP / 2 > late["seconds"]
    assert waiting["seconds"] / waiting["of"] > 0.5


@pytest.fixture
def group() -> Iterator[None]:
    """A process group of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    "kind, expected",
    [("sharded", "fsdp"), ("plain", None)],
)
def test_what_cannot_be_measured_has_a_reason(kind: str, expected: str | None) -> None:
    inner = nn.Linear(1, 1)
    model: Any = nn.Sequential(inner) if kind == "sharded" else DistributedDataParallel(inner)
    found = CommunicationMeter(model, Place(0, 0, 2, torch.device("cpu"))).totals()
    assert found is not None and found["steps"] == 0
    assert expected is None if found["reason"] is None else expected is not None and expected in found["reason"]


@pytest.mark.usefixtures("group")
def test_few_steps_are_measured_and_fewer_of_many() -> None:
    model = DistributedDataParallel(nn.Linear(1, 1))
    communication = CommunicationMeter(model, Place(0, 0, 2, torch.device("cpu")))
    measured = []
    for number in range(1, 401):
        before = communication.totals()
        with communication.step(number, lambda: 0):
            pass
        if communication.totals() != before:
            measured.append(number)
    assert measured == [*range(10, 101, 10), 200, 300, 400]


def test_one_process_has_nobody_to_talk_to() -> None:
    alone = CommunicationMeter(nn.Linear(1, 1), Place(0, 0, 1, torch.device("cpu")))
    with alone.step(10, lambda: 0), alone.micro_step(last=True):
        pass
    assert alone.totals() is None


def rank(communication: dict[str, Any] | None) -> Any:
    totals = {"compute_seconds": 40.0, "data_seconds": 1.0, "clock": 2, "communication": communication}
    steps = {"event": "steps", **totals, "losses": [1.0], "first": 1, "step": 1, "epoch": 0, "samples": 1}
    return figures_of(RankLog(3).take([{"event": "train_begin"}, steps | {"time": 0.0, "learning_rate": 0.1}]))


def test_the_share_is_that_of_the_measured_steps() -> None:
    found = rank({"seconds": 0.25, "of": 1.0, "steps": 5, "reason": None})
    assert (found.communication.share, found.communication.steps, found.communication_seconds) == (0.25, 5, 10.0)


@pytest.mark.parametrize(
    "reason, expected", [("not measured with x", "with x"), (None, "no step that it is measured on")]
)
def test_an_unknown_share_is_null_with_a_reason(reason: str | None, expected: str) -> None:
    found = rank({"seconds": 0.0, "of": 0.0, "steps": 0, "reason": reason})
    assert found.communication.share is None and found.communication_seconds is None
    assert expected in found.communication.reason
    assert rank(None).communication is None


class Event:
    """Of a device's part of torch that has none which tell time."""

    def record(self) -> None:
        raise RuntimeError("Backend doesn't support events.\nmore")


@pytest.mark.usefixtures("group")
def test_a_device_whose_events_tell_no_time_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "Event", lambda *_, **__: Event())
    meter = CommunicationMeter(DistributedDataParallel(nn.Linear(1, 1)), Place(0, 0, 2, torch.device("meta")))
    expected = "not measured: the device's events tell no time: Backend doesn't support events."
    assert meter.reason == expected
    with meter.step(1, lambda: 0):
        pass
    assert (meter.totals() or {})["reason"] == expected
