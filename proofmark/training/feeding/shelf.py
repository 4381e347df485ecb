"""Where batches lie for a rank, ahead of time, in slots of shared memory that it gives back: the loading end."""

from __future__ import annotations

import array
import queue
import socket
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from proofmark.errors import StepError
from proofmark.process.shared_memory.layout import read_layout, written
from proofmark.process.shared_memory.slots import Pool, Slot
from proofmark.training.feeding import words

if TYPE_CHECKING:
    from proofmark.case import Batch

Note = TypeVar("Note")

HELD = 64
"""Batches that a rank may keep beside those of two steps, whose garbage is collected late. Each is a file open on both
sides, of which there are a thousand or so."""


class Shelf(Generic[Note]):
    """One rank's. One thread lays; the same one hears of what was taken, or another.

    Args:
        rank: to speak with it.
        ahead: batches that lie ready.
        setting: what makes batches smaller.
    """

    def __init__(self, rank: socket.socket, ahead: int, setting: str) -> None:
        self._rank, self._ahead = rank, ahead
        self._pool = Pool(self._announce, setting=setting)
        self._room, self._waiting = queue.SimpleQueue[None](), deque[Note]()
        self._out: dict[int, Slot] = {}
        for _ in range(ahead):
            self._room.put(None)

    @property
    def has_room(self) -> bool:
        """Whether fewer batches lie ready than may."""
        return not self._room.empty()

    def wait_for_room(self) -> None:
        """Wait until another thread has heard that a batch was taken."""
        self._room.put(self._room.get())

    def lay(self, batch: Batch, note: Note) -> None:
        """Lay one, where there is room, and tell the rank. `note` is what taking it means.

        Raises:
            StepError: the rank gives nothing back, or there is no memory.
            OSError: the rank is gone.
        """
        waiting = len(self._waiting)  # before: both become fewer by what is taken meanwhile
        if (held := len(self._out) - waiting) >= self._ahead + HELD:
            raise StepError(f"its rank holds {held} batches that it has not given back; keep none of earlier steps")
        inputs, targets = batch
        tensors, last = words.channels_first([*inputs, targets])
        text = written(tensors)
        layout = read_layout(text)
        slot = self._pool.take(layout.size) or self._pool.make(layout.size)
        slot.lay(layout, tensors)
        self._room.get()
        self._out[slot.number] = slot
        self._waiting.append(note)  # before the rank can take it
        self._rank.send(words.LAID_FORM.pack(words.LAID, slot.number, last) + text)

    def take(self, message: bytes) -> Note:
        """Hear that the rank takes the next one, and which slots it gives back; what taking it means.

        Raises:
            ValueError: there is none, or it has no such slot.
        """
        if not self._waiting:
            raise ValueError("it takes a batch that is not there")
        for (number,) in words.NUMBER.iter_unpack(message[words.TAKEN_FORM.size :]):
            if number not in self._out:
                raise ValueError("it gives back a slot that it does not have")
            self._pool.give_back(self._out.pop(number))
        note = self._waiting.popleft()
        self._room.put(None)
        return note

    def _announce(self, slot: Slot, descriptor: int) -> None:
        form = words.SLOT_FORM.pack(words.SLOT, slot.number, slot.size)
        self._rank.sendmsg([form], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))])
