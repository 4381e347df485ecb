"""What a rank trains on, as its feeder loads it: the rank's end."""

from __future__ import annotations

import array
import contextlib
import itertools
import json
import os
import queue
import socket
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import torch

from proofmark.errors import StepError
from proofmark.process.shared_memory.layout import read_layout
from proofmark.process.shared_memory.slots import Slot
from proofmark.record.parts import Identity
from proofmark.training.feeding import words
from proofmark.training.feeding.loading import ahead, plan_of

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.rules.config import EffectiveConfig

RIGHTS = socket.CMSG_SPACE(4)
"""Bytes of what comes beside a message: a descriptor."""

_TOO_MANY = "too many files are open here (see ulimit -n)"


class Supply:
    """Batches as another process lays them, taken where they lie. A slot goes back when the tensors in it are gone.

    Args:
        feeder: to speak with it.
        ahead: batches that it lays ahead, and that are pinned so.

    Attributes:
        identity: of the data.
        items: samples that it has.

    Raises:
        StepError: the data is not there, or not as expected.
    """

    def __init__(self, feeder: socket.socket, ahead: int) -> None:
        self._feeder, self._ahead, self._pin = feeder, ahead, False
        self._slots: dict[int, Slot] = {}
        self._done, self._rings = deque[int](), deque[bool]()
        self._words = bytearray(words.LONGEST)
        hello, self._bell = self._heard(words.HELLO)
        if self._bell is not None:
            weakref.finalize(self, os.close, self._bell)
        identity, self.items = json.loads(hello[1:])
        self.identity = Identity.model_validate(identity)

    def pin(self) -> None:
        """Copy batches to pinned memory from now on, ahead of time: this process has its device. Pinning before would
        choose one. Nothing is done where the device's part of torch can't pin, which it need not."""
        self._pin = can_pin()

    def _source(self) -> Callable[[], Batch]:
        """Where batches come from, one a call. To be called once."""
        return _in_a_thread(self._pinned, self._ahead) if self._pin else self._laid

    def _taken(self, batch: Batch) -> Batch:
        """Say that it is, and which slots are free by now."""
        free = b"".join(words.NUMBER.pack(self._done.popleft()) for _ in range(len(self._done)))
        self._say(words.TAKEN_FORM.pack(words.TAKEN) + free)
        if self._rings.popleft():
            self._ring()
        return batch

    def _laid(self) -> Batch:
        """The next one, where it lies."""
        message, _ = self._heard(words.LAID)
        _, rings, number, last = words.LAID_FORM.unpack_from(message)
        self._rings.append(rings)
        layout = read_layout(message[words.LAID_FORM.size :])
        tensors = self._slots[number].tensors(layout, partial(self._done.append, number))
        *inputs, targets = words.channels_last(tensors, last) if last else tensors
        return inputs, targets

    def _pinned(self) -> Batch:
        inputs, targets = self._laid()
        return [each.pin_memory() for each in inputs], targets.pin_memory()

    def _say(self, message: bytes) -> None:
        try:
            self._feeder.send(message)
        except OSError:
            raise self._last_word() from None

    def _ring(self) -> None:
        """Have what was said be heard, by who doesn't wait for each word."""
        if self._bell is not None:
            os.eventfd_write(self._bell, 1)

    def _last_word(self) -> StepError:
        """Why there is no more: it may have been told before what lies ready was taken."""
        for _ in range(2):  # that the other end is gone is told first, and once
            with contextlib.suppress(OSError):
                while message := self._feeder.recv(words.LONGEST):
                    if message[0] == words.FAILED:
                        return StepError(message[1:].decode("utf-8", "replace"))
        return _lost()

    def _heard(self, kind: int) -> tuple[bytes, int | None]:
        """The next word of a kind, and the descriptor that came along; slots are mapped as they are told of."""
        while True:
            try:
                size, beside, *_ = self._feeder.recvmsg_into([self._words], RIGHTS, socket.MSG_CMSG_CLOEXEC)
            except OSError:
                raise self._last_word() from None
            if not size:
                raise _lost()
            message = bytes(memoryview(self._words)[:size])
            descriptor = int.from_bytes(beside[0][2][:4], "little") if beside else None
            if message[0] == kind:
                return message, descriptor
            if message[0] == words.FAILED:
                raise StepError(message[1:].decode("utf-8", "replace"))
            if descriptor is None:
                raise StepError(f"a batch came without its memory: {_TOO_MANY}")
            self._map(message, descriptor)

    def _map(self, message: bytes, descriptor: int) -> None:
        _, number, size = words.SLOT_FORM.unpack(message)
        try:
            self._slots[number] = Slot(number, size, descriptor)
        finally:
            os.close(descriptor)


class Fed(Supply):
    """What a rank trains on: its share of the plan.

    Args: as of `Supply`, and
        config: the training's.
        world: how many ranks there are.
        seed: of the training.

    Attributes:
        order: in which its samples come.
    """

    def __init__(self, feeder: socket.socket, config: EffectiveConfig, world: int, seed: int) -> None:
        super().__init__(feeder, ahead(config))
        if self._bell is None:
            raise StepError(f"its feeder's bell did not come: {_TOO_MANY}")
        self.order = plan_of(self.items, config, world, seed)

    def sample(self) -> Batch:
        """The first sample of the data, alone; it counts for nothing.

        Raises:
            StepError: it can't be read.
        """
        self._say(bytes([words.SAMPLE]))
        self._ring()
        inputs, targets = self._taken(self._laid())
        return [each.clone() for each in inputs], targets.clone()

    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        """This rank's micro-batches from there on. To be called once.

        Raises:
            StepError: a sample can't be read.
        """
        self._say(words.BEGIN_FORM.pack(words.BEGIN, epoch, first))
        self._ring()
        source = self._source()
        return iter(lambda: self._taken(source()), None)


class Requested(Supply):
    """Batches of a rank's choice, as it is evaluated on."""

    _next: Callable[[], Batch] | None = None
    _to_come = 0

    def pin(self) -> None:
        """As of `Supply`; no pass is under way."""
        super().pin()
        self._next = None

    def load(self, lists: list[list[int]], epoch: int = 0) -> Iterator[Batch]:
        """One pass; begin it when the one before has ended or is given up.

        Raises:
            StepError: a sample can't be read.
        """
        self._next = self._next or self._source()
        for _ in range(self._to_come):
            self._taken(self._next())
        chosen = list(itertools.chain.from_iterable(lists))
        text = array.array("I", [*map(len, lists), *chosen]).tobytes()
        self._say(words.REQUEST_FORM.pack(words.REQUEST, epoch, len(lists), len(chosen)))
        for start in range(0, len(text), words.LONGEST):
            self._say(text[start : start + words.LONGEST])
        self._to_come = len(lists)
        while self._to_come:
            inputs, targets = self._taken(self._next())
            self._to_come -= 1
            yield inputs, targets.clone()  # a metric may keep them all, and its slot would never come back


def can_pin() -> bool:
    """Whether the device's part of torch pins memory of the host's."""
    try:
        torch.empty(1).pin_memory()
    except RuntimeError:
        return False
    return True


def _in_a_thread(load: Callable[[], Batch], count: int) -> Callable[[], Batch]:
    """The same, in a thread of its own, so many calls ahead."""
    ready: queue.Queue[Batch | Exception] = queue.Queue(count)
    device = torch.accelerator.current_device_index()

    def run() -> None:
        try:
            torch.accelerator.set_device_index(device)
            while True:
                ready.put(load())
        except Exception as error:  # noqa: BLE001 (who asks raises it)
            ready.put(error)

    def get() -> Batch:
        if isinstance(found := ready.get(), Exception):
            ready.put(found)  # who asks again is told again: nothing comes any more
            raise found
        return found

    threading.Thread(target=run, daemon=True).start()
    return get


def _lost() -> StepError:
    return StepError("the process that loads its data has ended")
