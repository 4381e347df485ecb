"""The data of a node's ranks is made once, and each rank has a feeder of its own."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from proofmark.errors import StepError
from proofmark.record.events.log import EventLog, read_events
from proofmark.rules.config import EffectiveConfig
from proofmark.training.feeding.fed import Fed, Requested
from proofmark.training.feeding.loading import Planned
from proofmark.training.logs.failure import STACKS
from proofmark.training.logs.gist import gist
from proofmark.training.node.feeders import Feeders
from proofmark.training.outcome.event_types import AGENT_EVENTS
from proofmark.training.outcome.record import Failure
from proofmark.training.spec import AGENT, TrainingSpec
from tests.unit.training.test_feeding import config_of, equal
from tests.unit.training.tokens import ITEMS, Sequences, Tokens
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.record.events.log import Event

pytestmark = pytest.mark.usefixtures("warm")
IMPORTED = ("tests.unit.training.tokens", "proofmark.training.feeding.loading")

CONFIG = config_of(eval_batch_size=4)


class Telling(Sequences):
    """Says, in the rank's log, of which rank it is loaded."""

    def __getitems__(self, indices: list[int]) -> Batch:
        print(f"loaded for rank {os.environ['RANK']}", flush=True)
        return super().__getitems__(indices)


class Noted(Tokens):
    """Its data sets are counted where they are made."""

    def build_dataset(self, config: EffectiveConfig, split: str) -> Sequences:
        with Path(config.get("noted")).open("a") as stream:
            stream.write(f"{split}\n")
        return Telling()


class Untrainable(Tokens):
    missing = "train"

    def build_dataset(self, config: EffectiveConfig, split: str) -> Sequences:
        if split == self.missing:
            raise StepError(f"no {split} here")
        return super().build_dataset(config, split)


class Unvalidated(Untrainable):
    missing = "validation"


class Fewer(Sequences):
    def __len__(self) -> int:
        return ITEMS - 1


class Miscounted(Tokens):
    """Says of its data that there is more."""

    def build_dataset(self, config: EffectiveConfig, split: str) -> Sequences:
        return Fewer()


class Node:
    """Ranks' ends of their feeders."""

    def __init__(self, folder: Path, case: type[Tokens], ranks: int = 2, workers: int = 0) -> None:
        self.noted = folder / "noted"
        config = config_of(eval_batch_size=4, num_workers=workers, noted=str(self.noted))
        spec = TrainingSpec((__name__, case.__name__), "nobody", "", config.as_dict(), str(folder), (), nproc=ranks)
        spec.save(folder / "spec.json")
        self.logs = [folder / f"rank{rank}.log" for rank in range(ranks)]
        outputs = {rank: os.open(path, os.O_WRONLY | os.O_CREAT) for rank, path in enumerate(self.logs)}
        self._log, self._ends = EventLog(folder / "agent.jsonl"), dict[int, tuple[int, ...]]()
        self.feeders, self._open = Feeders(outputs, self._log), list[socket.socket]()
        assert self.feeders.start(folder / "spec.json", self._ends)
        for output in outputs.values():
            os.close(output)

    def sockets(self, rank: int) -> list[socket.socket]:
        """Those of a rank."""
        found = [socket.socket(fileno=number) for number in self._ends.pop(rank)]
        self._open += found
        return found

    def end(self) -> list[Event]:
        """Of the ranks, then of the feeders; what the agent writes down."""
        for rank in list(self._ends):
            self.sockets(rank)
        for each in self._open:
            each.close()
        self.feeders.end()
        self.feeders.tell()
        return list(read_events(self._log.path, AGENT_EVENTS))


@pytest.fixture(autouse=True)
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is the agent; when it has ended its feeders, nothing of theirs is left."""
    monkeypatch.setenv(AGENT, str(os.getpid()))
    before = {each.pid for each in psutil.Process().children(recursive=True)}
    yield
    until(lambda: {each.pid for each in psutil.Process().children(recursive=True)} <= before, "the end of all of them")


def test_data_is_made_once_for_all_ranks_of_a_node(tmp_path: Path) -> None:
    node = Node(tmp_path, Noted)
    for rank in range(2):
        spoken, requests = node.sockets(rank)
        fed, asked = Fed(spoken, CONFIG, 2, 0), Requested(requests, 2)
        own = Planned.of(Tokens(), CONFIG, rank, 2, 0)
        batches = fed.batches(0, 0)
        assert all(equal(next(batches), wanted) for wanted in own.batches(0, 0))
        assert [len(targets) for _, targets in asked.load([[0, 1], [2]])] == [2, 1]
    assert node.feeders.data() == {"items": ITEMS, "data": Sequences.identity.model_dump(mode="json")}
    assert sorted(node.noted.read_text().split()) == ["train", "validation"]
    taken = {event["rank"]: (event["samples"], event["evaluated"]) for event in node.end()}
    assert {rank: samples for rank, (samples, _) in taken.items()} == {0: ITEMS + 1, 1: ITEMS - 1}
    assert [set(log.read_text().splitlines()) for log in node.logs] == [
        {f"loaded for rank {rank}"} for rank in range(2)
    ], "each prints into its rank's log"


def test_a_node_of_many_ranks_is_fed(tmp_path: Path) -> None:
    """Their descriptors come in one message: of one that is too long the rest is lost without a word."""
    node = Node(tmp_path, Tokens, 16)
    for rank in range(16):
        spoken, requests = node.sockets(rank)
        assert Fed(spoken, CONFIG, 16, 0).items == Requested(requests, 2).items == ITEMS
    assert [event["event"] for event in node.end()] == ["fed"] * 16


@pytest.mark.parametrize("case", [Untrainable, Unvalidated])
def test_each_rank_is_told_why_there_is_no_data(tmp_path: Path, case: type[Untrainable]) -> None:
    node = Node(tmp_path, case)
    for rank in range(2):
        spoken, requests = node.sockets(rank)
        with pytest.raises(StepError, match=f"no {case.missing} here"):
            _ = Fed(spoken, CONFIG, 2, 0), Requested(requests, 2)
    node.end()
    assert bool(node.feeders.data()) == (case is Unvalidated)


def test_a_rank_is_told_that_data_is_not_as_large_as_it_says(tmp_path: Path) -> None:
    node = Node(tmp_path, Miscounted, 1)
    spoken, _ = node.sockets(0)
    told = "^build_dataset: the data set of 'train' has 10 samples, its identity says 11;"
    with pytest.raises(StepError, match=told):
        Fed(spoken, CONFIG, 1, 0)
    node.end()
    assert not node.feeders.data()


def test_a_feeder_that_is_killed_is_named_and_takes_no_other_along(tmp_path: Path) -> None:
    node = Node(tmp_path, Tokens)
    ranks = [node.sockets(rank) for rank in range(2)]
    (first, _), (second, _) = [(Fed(spoken, CONFIG, 2, 0), Requested(asked, 2)) for spoken, asked in ranks]
    os.kill(node.feeders._counts[0].processes[0], signal.SIGKILL)
    with pytest.raises(StepError, match="the process that loads its data has ended"):
        first.sample()
    assert equal(second.sample(), Planned.of(Tokens(), CONFIG, 1, 2, 0).sample())
    reasons = {event["rank"]: event.get("reason") for event in node.end()}
    assert reasons == {0: "the process that loads its data died of signal 9 (SIGKILL)", 1: None}


def test_a_rank_hears_of_the_end_of_its_own_feeder(tmp_path: Path) -> None:
    """No other one, and nobody who forked it, has its end of the sockets."""
    node = Node(tmp_path, Tokens)
    ranks = [node.sockets(rank) for rank in range(2)]
    for spoken, asked in ranks:
        Fed(spoken, CONFIG, 2, 0)
        Requested(asked, 2)
    for counts, ends in zip(list(node.feeders._counts.values()), ranks, strict=True):
        for process, end in zip(counts.processes, ends, strict=True):
            os.kill(process, signal.SIGKILL)
            end.settimeout(PATIENCE)
            assert end.recv(64) == b""
    node.end()


def test_where_it_is_that_makes_the_data_is_shown(tmp_path: Path) -> None:
    """As long as there are no feeders."""
    node = Node(tmp_path, Slow)
    process: Any = node.feeders._process
    while "slow" not in node.logs[0].read_text():
        assert psutil.pid_exists(process.pid)
    node.feeders.stacks({1: "init"})
    assert "build_dataset" in node.logs[0].read_text()
    for rank in range(2):
        node.sockets(rank)
    process.send_signal(signal.SIGKILL)
    assert all("died of signal 9" in event["reason"] for event in node.end())


@pytest.mark.parametrize("workers", [0, 2])
def test_of_those_that_load_for_a_rank_that_hangs_the_place_is_named(tmp_path: Path, workers: int) -> None:
    """That of its feeder, or of a worker of that, and of none that has nothing to do."""
    node = Node(tmp_path, Stuck, ranks=1, workers=workers)
    spoken, requests = node.sockets(0)
    fed, asked = Fed(spoken, CONFIG, 1, 0), Requested(requests, 2)
    assert [len(targets) for _, targets in asked.load([[1], [2]])] == [1, 1]
    fed.batches(0, 0)
    until(lambda: "stuck" in node.logs[0].read_text(), "a load that does not end")
    node.feeders.stacks({0: "data"})
    where = Failure(ranks=(0,), cause="rank 0 hung", last_lines=node.logs[0].read_text()[-STACKS:])
    node.end()
    assert gist(where, tmp_path, Path(__file__).parent)[1].startswith("at test_once.py, line ")


class Sticking(Sequences):
    def __getitems__(self, indices: list[int]) -> Batch:
        print("stuck", flush=True)
        time.sleep(600)
        return super().__getitems__(indices)


class Stuck(Tokens):
    def build_dataset(self, config: EffectiveConfig, split: str) -> Sequences:
        return Sticking() if split == "train" else Sequences()


class Slow(Tokens):
    def build_dataset(self, config: EffectiveConfig, split: str) -> Sequences:
        print("slow", flush=True)
        time.sleep(600)
        raise AssertionError
