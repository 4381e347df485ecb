"""Where batches lie for a rank, ahead of time, in slots of shared memory that it gives back: the loading end."""

from __future__ import annotations

import array
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

READY = 64
"""Batches that lie ready at most: a word of each that is taken waits to be heard, and a socket holds some 270."""

SMALL, SHARE = 4 << 20, 200
"""Bytes of small batches that lie ready; and of all that were taken, no more than one in so many: what lies ready may
be taken after the clock stands."""


class Shelf(Generic[Note]):
    """One rank's. One thread lays.

    Args:
        rank: to speak with it.
        ahead: batches that lie ready, or the rank holds at once.
        setting: what makes batches smaller.
        small: how many small ones may lie ready, where that is more.
    """

    def __init__(self, rank: socket.socket, ahead: int, setting: str, small: int = 0) -> None:
        self._rank, self._small, self._most_held = rank, small, ahead + HELD
        self._ahead = self._least = min(ahead, READY)
        self._taken = 0
        self._pool = Pool(self._announce, setting=setting)
        self._waiting, self._unheard = deque[Note](), 0
        self._out: dict[int, Slot] = {}

    @property
    def has_room(self) -> bool:
        """Whether fewer batches lie ready than may, as far as was heard."""
        return len(self._waiting) < self._ahead

    def lay(self, batch: Batch, note: Note) -> None:
        """Lay one, where there is room, and tell the rank. `note` is what taking it means.

        The rank is to ring when half of what may lie ready is taken: to be woken costs as much as a small batch does.

        Raises:
            StepError: the rank gives nothing back, or there is no memory.
            OSError: the rank is gone.
        """
        waiting = len(self._waiting)  # before: both become fewer by what is taken meanwhile
        if (held := len(self._out) - waiting) >= self._most_held:
            raise StepError(f"its rank holds {held} batches that it has not given back; keep none of earlier steps")
        inputs, targets = batch
        tensors, last = words.channels_first([*inputs, targets])
        text = written(tensors)
        layout = read_layout(text)
        slot = self._pool.take(layout.size) or self._pool.make(layout.size)
        slot.lay(layout, tensors)
        self._out[slot.number] = slot
        self._waiting.append(note)  # before the rank can take it
        self._unheard += 1
        self._ahead = max(self._least, min(self._small, SMALL // max(1, layout.size), self._taken // SHARE))
        if rings := self._unheard >= self._ahead // 2:  # so one of those that lie ready always does
            self._unheard = 0
        self._rank.send(words.LAID_FORM.pack(words.LAID, rings, slot.number, last) + text)

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
        self._taken += 1
        return self._waiting.popleft()

    def _announce(self, slot: Slot, descriptor: int) -> None:
        form = words.SLOT_FORM.pack(words.SLOT, slot.number, slot.size)
        self._rank.sendmsg([form], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))])
