"""What a rank is evaluated on is loaded by another process, a pass at a time, as it asks."""

from __future__ import annotations

import array
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from proofmark.errors import StepError
from proofmark.training.feeding import on_request, shelf, words
from proofmark.training.feeding.fed import Requested
from proofmark.training.feeding.loading import RankLoader
from proofmark.training.feeding.on_request import OnRequest
from proofmark.training.ranks.walled import wall_of_rank
from tests.unit.training.test_feeding import equal
from tests.unit.training.tokens import ITEMS, Sequences
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from proofmark.case import Batch

LISTS = [[3, 0, 2], [1], [4, 4]]


class Served:
    """A rank's end, and who serves it in a thread of this process."""

    def __init__(self, data: Any) -> None:
        self.counted: list[int] = []
        own, self.end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.own = own
        self.served = OnRequest(RankLoader(data, 0), own, 40, "eval_batch_size", self.counted.append)
        self.raised: list[BaseException] = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.served.feed()
        except Exception as error:
            self.raised.append(error)

    def said(self, *messages: bytes) -> str:
        """What it raised when a rank had said this and was gone."""
        assert self.end.recv(words.LONGEST)[0] == words.HELLO
        for message in messages:
            self.end.send(message)
        self.thread.join(PATIENCE)
        return str(self.raised[0]) if self.raised else ""


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Makes one that leaves no descriptor behind."""
    made: list[Served] = []

    def make(data: Any, **others: Any) -> Served:
        made.append(Served(data, **others))
        return made[-1]

    yield make
    for each in made:
        each.end.close()
        each.thread.join(PATIENCE)
        each.own.close()


def asked(lists: list[list[int]], epoch: int = 0, samples: int | None = None) -> tuple[bytes, bytes]:
    chosen = [each for of_one in lists for each in of_one]
    head = words.REQUEST_FORM.pack(words.REQUEST, epoch, len(lists), len(chosen) if samples is None else samples)
    return head, array.array("I", [*map(len, lists), *chosen]).tobytes()


def test_a_rank_gets_what_it_would_have_loaded(serve: Callable[..., Served]) -> None:
    found = Requested(serve(Sequences()).end, 2)
    assert (found.identity, found.items) == (Sequences.identity, ITEMS)
    for lists in (LISTS, [], [[0]], [[i % ITEMS] for i in range(40)]):
        wanted = RankLoader(Sequences(), 0).load(lists)
        assert all(equal(one, other) for one, other in zip(found.load(lists), wanted, strict=True))


def test_what_a_rank_can_see_was_counted(serve: Callable[..., Served]) -> None:
    served = serve(Sequences())
    found = Requested(served.end, 2)
    for _ in found.load(LISTS):
        pass
    assert served.counted == [3, 1, 2]


def test_a_request_may_be_longer_than_a_message(serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "LONGEST", 1024)
    found = Requested(serve(Kept()).end, 2)
    assert sum(len(targets) for _, targets in found.load([[i, i + 1] for i in range(0, 500, 2)])) == 500


def test_a_pass_that_was_given_up_is_not_in_the_next_ones_way(serve: Callable[..., Served]) -> None:
    found = Requested(serve(Sequences()).end, 2)
    given_up = found.load(LISTS)
    next(given_up)
    assert [len(targets) for _, targets in found.load([[0, 1, 2, 3], [4]])] == [4, 1]


class Epochs(Sequences):
    """Tells its epoch."""

    def __getitems__(self, indices: list[int]) -> Batch:
        return [torch.tensor([self.epoch] * len(indices))], torch.tensor(indices)


class Kept(Sequences):
    def __len__(self) -> int:
        return 500

    def __getitems__(self, indices: list[int]) -> Batch:
        return [torch.tensor(indices)], torch.tensor(indices)


def test_all_targets_may_be_kept(serve: Callable[..., Served]) -> None:
    """As a metric that is no mean does; and more batches than all words between the two have room for."""
    found = Requested(serve(Kept()).end, 2)
    kept = [targets for _, targets in found.load([[i] for i in range(500)])]
    assert [int(each) for each in kept] == list(range(500))


def test_a_pass_is_of_an_epoch(serve: Callable[..., Served]) -> None:
    found = Requested(serve(Epochs()).end, 2)
    assert [int(next(found.load([[0]], epoch))[0][0]) for epoch in (0, 5, 1)] == [0, 5, 1]


@pytest.mark.parametrize(
    "messages, expected",
    [
        ([b"x"], "it sent an unknown request"),
        ([bytes([words.REQUEST])], "it sent an unknown request"),
        ([words.TAKEN_FORM.pack(words.TAKEN)], "it takes a batch that is not there"),
        (
            [words.REQUEST_FORM.pack(words.REQUEST, 0, 1, 1 << 30)],
            f"it asks for a pass over {1 << 30} samples in 1 batches: of {ITEMS}",
        ),
        (
            [words.REQUEST_FORM.pack(words.REQUEST, 0, 1 << 30, 1)],
            f"it asks for a pass over 1 samples in {1 << 30} batches: of {ITEMS}",
        ),
        (asked([[ITEMS]]), "samples that are not there"),
        (asked([[0], []]), "samples that are not there, or for too many at once: 40 may be"),
        (asked([[0] * 41] + [[0]] * 41), "samples that are not there, or for too many at once: 40 may be"),
        (asked([[0], [1]], samples=1), "it asks for batches of other sizes than it says"),
        ((asked([[0], [1]])[0], asked([[0, 1], [1]])[1][:16]), "it asks for batches of other sizes than it says"),
        ((asked([[0], [1]])[0], asked([[0], [1]])[1] + b"1"), "bytes length not a multiple of item size"),
        ((asked([[0]])[0], asked([[0]])[1] * 9), "it asks for batches of other sizes than it says"),
        ([*asked([[0]] * 9), *asked([[0]])], "it asks for a pass while another one lasts"),
    ],
)
def test_a_rank_that_asks_for_what_is_none_is_served_no_more(
    serve: Callable[..., Served], messages: list[bytes], expected: str
) -> None:
    assert expected in serve(Sequences()).said(*messages)


@pytest.mark.parametrize("begun", [0, 1, 2])
def test_a_rank_that_is_gone_is_no_failure_of_its_own(serve: Callable[..., Served], begun: int) -> None:
    """Before it asked, in the middle of its words, and while a pass lasts."""
    served = serve(Sequences())
    assert served.end.recv(words.LONGEST)
    head, text = asked([[0]] * 9)
    for message in (head, text)[:begun]:
        served.end.send(message)
    served.end.close()
    served.thread.join(PATIENCE)
    assert all(isinstance(each, ConnectionError) for each in served.raised) and len(served.raised) == bool(begun)


class Broken(Sequences):
    def __getitems__(self, indices: list[int]) -> Batch:
        if 3 in indices:
            raise StepError("data/3.png can't be read")
        return super().__getitems__(indices)


def test_why_there_is_no_more_reaches_the_rank(serve: Callable[..., Served]) -> None:
    found = serve(Broken())
    rank = Requested(found.end, 2)
    batches = rank.load([[0], [3]])
    next(batches)
    found.thread.join(PATIENCE)
    on_request.tell(found.own, found.raised[0])
    with pytest.raises(StepError, match=r"data/3\.png can't be read"):
        next(batches)


def test_a_rank_that_keeps_all_gets_no_more(serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "HELD", 3)
    found = serve(Sequences())
    rank = Requested(found.end, 2)
    batches = rank.load([[0]] * 20)
    held = [next(batches) for _ in range(5)]
    found.thread.join(PATIENCE)
    assert "holds 5 batches that it has not given back" in str(found.raised[0]) and len(held) == 5


class Ends(Sequences):
    def __getitems__(self, indices: list[int]) -> Batch:
        sys.exit("I end it all")


class Raises(Sequences):
    def __getitems__(self, indices: list[int]) -> Batch:
        raise ConnectionError("label 20 is not a number")


IN_ANOTHER = """
import os, socket, sys
from proofmark.training.feeding.fed import Requested
from proofmark.training.feeding.on_request import fork_server
from tests.unit.training.test_on_request import Broken, Ends, Raises
from tests.unit.training.tokens import Sequences
def missing(): raise RuntimeError("no such data")
workers = int(sys.argv[1])
def served(data):
    own, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fork_server(own, data, workers, 40, "batch_size")
    return Requested(end, 2)
def outcome(call):
    try: return call()
    except Exception as error: return error
one, other, third, fourth = map(served, (Sequences, Broken, Raises, Sequences if workers else Ends))
print([len(targets) for _, targets in one.load([[0, 1], [2]])])
print(outcome(lambda: list(other.load([[0], [3]]))))
print(outcome(lambda: list(third.load([[0]]))))
print("SystemExit: I end it all" if workers else outcome(lambda: list(fourth.load([[0]]))))
print(len(list(one.load([[4]] * 3))))
print(outcome(lambda: served(missing)))
print(outcome(lambda: list(other.load([[0]]))))
children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
print(*children, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_a_process_beside_the_rank_loads_and_ends_with_it(workers: int) -> None:
    command = [sys.executable, "-c", IN_ANOTHER, str(workers)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": "."})
    lines = ran.stdout.splitlines()
    failures = ["data/3.png can't be read", "ConnectionError: label 20 is not a number", "SystemExit: I end it all"]
    ended = "the process that loads its data has ended"
    assert lines[:7] == ["[2, 1]", *failures, "3", "RuntimeError: no such data", ended], ran.stderr
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in lines[7].split()), "its end with its rank's")


@pytest.mark.parametrize(
    "backend, world, beside, wanted",
    [
        ("gloo", 1, 1, ("own", "none", False)),
        ("gloo", 2, 2, ("all", "none", False)),
        ("nccl", 1, 1, ("all", "datagrams", False)),
        ("nccl", 8, 1, ("all", "datagrams", False)),
        ("nccl", 8, 8, ("all", "datagrams", True)),
    ],
)
def test_a_ranks_wall_is_as_open_as_its_group_needs(
    backend: str, world: int, beside: int, wanted: tuple[str, str, bool]
) -> None:
    wall = wall_of_rank(backend, world, beside)
    assert (wall.streams, wall.unix_sockets, wall.shared_memory) == wanted
