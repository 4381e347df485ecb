"""Batches of a rank's choice, as it is evaluated on: a process that is none of the rank's loads them."""

from __future__ import annotations

import array
import contextlib
import os
import socket
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from proofmark.errors import ProofmarkError, first_line, named
from proofmark.process.lifetime import end_with
from proofmark.training.feeding import words
from proofmark.training.feeding.shelf import Shelf

if TYPE_CHECKING:
    from proofmark.training.case import TrainingData
    from proofmark.training.feeding.loading import RankLoader

AHEAD = 2
"""Batches that lie ready. The rank is heard when no more may: of the words that it can have said by then, and of what
lies ready, many times as many fit between the two."""

MORE = 1 << 16
"""Lists of a pass beside one for each sample: of samples that are borrowed, where ranks have not equally many."""


class OnRequest:
    """Loads what a rank asks for, a pass at a time, in one thread: the rank waits for it.

    Args:
        loader: of all that may be asked for.
        rank: to speak with it.
        largest: samples that a batch may have.
        setting: what makes batches smaller.
        counted: is told how many samples a batch has before the rank can see it.
    """

    def __init__(
        self,
        loader: RankLoader,
        rank: socket.socket,
        largest: int,
        setting: str,
        counted: Callable[[int], None] = lambda samples: None,
    ) -> None:
        self._loader, self._rank, self._largest, self._counted = loader, rank, largest, counted
        self._shelf = Shelf[None](rank, AHEAD, setting)

    def feed(self) -> None:
        """Serve the rank, until it is gone.

        Raises:
            StepError: a sample can't be read, or there is no memory.
            ValueError: it said what is no word.
            OSError: the rank is gone.
        """
        self._rank.send(words.hello(self._loader.identity, self._loader.items))
        while message := self._rank.recv(words.LONGEST):
            if message[0] == words.TAKEN:
                self._shelf.take(message)
                continue
            epoch, lists = self._asked(message)
            for chosen, batch in zip(lists, self._loader.load(lists, epoch), strict=True):
                while not self._shelf.has_room:
                    self._hear_one_taken()
                self._counted(len(chosen))
                self._shelf.lay(batch, None)

    def _hear_one_taken(self) -> None:
        if (message := self._heard())[0] != words.TAKEN:
            raise ValueError("it asks for a pass while another one lasts")
        self._shelf.take(message)

    def _heard(self) -> bytes:
        if message := self._rank.recv(words.LONGEST):
            return message
        raise ConnectionError("the rank is gone")

    def _asked(self, message: bytes) -> tuple[int, list[list[int]]]:
        """What a request is for."""
        if message[0] != words.REQUEST or len(message) != words.REQUEST_FORM.size:
            raise ValueError("it sent an unknown request")
        _, epoch, lists, samples = words.REQUEST_FORM.unpack(message)
        items = self._loader.items
        if lists > items + MORE or samples > 2 * (items + lists):  # one that is alone comes twice
            raise ValueError(f"it asks for a pass over {samples} samples in {lists} batches: of {items}")
        text = bytearray()
        while len(text) < 4 * (lists + samples):
            text += self._heard()
        numbers = array.array("I", bytes(text)).tolist()
        sizes, chosen = numbers[:lists], numbers[lists:]
        if sum(sizes) != samples or len(chosen) != samples:
            raise ValueError("it asks for batches of other sizes than it says")
        if any(not 0 < size <= self._largest for size in sizes) or max(chosen, default=0) >= items:
            raise ValueError(f"it asks for samples that are not there, or for too many at once: {self._largest} may be")
        left = iter(chosen)
        return epoch, [[next(left) for _ in range(size)] for size in sizes]


def fork_server(
    rank: socket.socket,
    data: Callable[[], TrainingData],
    workers: int,
    largest: int,
    setting: str,
    ranks: Sequence[socket.socket] = (),
    counted: Callable[[int], None] = lambda samples: None,
) -> None:
    """Fork a process that serves a rank, and ends with this one: worker processes of a loader speak to it over sockets
    in files and shared memory, which a rank behind its wall has not.

    This process has no threads yet, and no code of a vendor's has run in it. It is a process of its own beside who
    loads other data: a data set may draw from its process's only source of chance.

    Args:
        rank: the end by which it is served, which is closed here.
        data: what makes what may be asked for, there.
        workers: processes that load it.
        largest: samples that a batch may have.
        setting: what makes batches smaller.
        ranks: ends that are this process's alone, by whose closing others see that it has ended: behind a wall its
            end sends no signal.
        counted: as of `OnRequest`; called there.

    Raises:
        OSError: there can be no more processes.
    """
    parent = os.getpid()
    if os.fork():
        rank.close()
        return
    try:
        end_with(parent)
        for end in ranks:
            end.close()
        serve(rank, data, workers, largest, setting, counted)
    finally:
        os._exit(0)


def serve(
    rank: socket.socket,
    data: Callable[[], TrainingData],
    workers: int,
    largest: int,
    setting: str,
    counted: Callable[[int], None],
) -> None:
    """Serve a rank in this process, until it is gone.

    Args: as of `fork_server`.
    """
    from proofmark.training.feeding.loading import RankLoader

    try:
        OnRequest(RankLoader(data(), workers, ahead=AHEAD), rank, largest, setting, counted).feed()
    except BaseException as error:  # noqa: BLE001 (a case's code may raise anything, and end this process)
        tell(rank, error)


def tell(rank: socket.socket, error: BaseException) -> None:
    """Say to a rank why there is no more."""
    said = first_line(error)
    if not isinstance(error, ProofmarkError | ConnectionError):
        traceback.print_exc()
        said = named(error)
    with contextlib.suppress(OSError):
        rank.send(bytes([words.FAILED]) + said.encode("utf-8", "backslashreplace")[: words.LONGEST - 1])
