"""Batches of a rank's choice, as it is evaluated on: whoever loads them is no process of the rank's."""

from __future__ import annotations

import contextlib
import socket
import traceback
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, TypeAdapter

from proofmark.errors import ProofmarkError
from proofmark.training.feeding import words
from proofmark.training.feeding.shelf import Shelf

if TYPE_CHECKING:
    from proofmark.training.ranks.loading import RankLoader

Number = Annotated[int, Field(strict=True, ge=0)]

REQUEST = TypeAdapter(tuple[Number, list[list[Number]]])


class OnRequest:
    """Loads what a rank asks for, a pass at a time, in one thread: the rank waits for it.

    Args:
        loader: of all that may be asked for.
        ahead: batches that lie ready.
        rank: to speak with it.
        setting: what makes batches smaller.
    """

    def __init__(self, loader: RankLoader, ahead: int, rank: socket.socket, setting: str) -> None:
        self._loader, self._rank = loader, rank
        self._shelf = Shelf[None](rank, ahead, setting)

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
            for batch in self._loader.load(lists, epoch):
                while not self._shelf.has_room:
                    self._hear_one_taken()
                self._shelf.lay(batch, None)

    def feed_or_tell(self) -> None:
        """The same; why there is no more is told."""
        try:
            self.feed()
        except Exception as error:  # noqa: BLE001 (a case's code may raise anything)
            tell(self._rank, error)

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
            raise ValueError("it says what is no word")
        _, size = words.REQUEST_FORM.unpack(message)
        if size > words.LONGEST_REQUEST:
            raise ValueError(f"it asks for a pass of {size} bytes; at most {words.LONGEST_REQUEST} are read")
        text = bytearray()
        while len(text) < size:
            text += self._heard()
        epoch, lists = REQUEST.validate_json(bytes(text))
        if any(not each or max(each) >= self._loader.items for each in lists):
            raise ValueError(f"it asks for a batch of none, or for samples that are not there: of {self._loader.items}")
        return epoch, lists


def tell(rank: socket.socket, error: Exception) -> None:
    """Say to a rank why there is no more."""
    said = next(iter(str(error).strip().splitlines()), "")
    if not isinstance(error, ProofmarkError | ConnectionError):
        traceback.print_exc()
        said = f"{type(error).__name__}: {said}"
    with contextlib.suppress(OSError):
        rank.send(bytes([words.FAILED]) + said.encode()[: words.LONGEST - 1])
