"""An engine in a process of its own, called as if it were here.

What runs within a call finds the caches of the processor full of the model: a line of Python takes ten times as long as
elsewhere. So what can be done before a call or after it is not done within.
"""

from __future__ import annotations

import json
import os
import struct
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from proofmark.inference.engine import protocol
from proofmark.inference.engine.answers import FORM, Answers, Forms
from proofmark.inference.engine.engine_process import EngineFailed, EngineProcess
from proofmark.inference.engine.replies import Made, content_of
from proofmark.measuring.window import Apart
from proofmark.plain_json import first_of
from proofmark.process.memory import peak_resident_bytes, reset_peak
from proofmark.process.shared_memory.layout import MOST_BYTES, read_layout, written
from proofmark.process.shared_memory.slots import Pool, Slot
from proofmark.wall.isolation import Isolation

if TYPE_CHECKING:
    import torch

FIRST_ANSWER = 1 << 16
"""Bytes of the slot for an answer before the first one is known."""

AHEAD = 8
"""Batches that may lie in shared memory before they are asked about, or after."""

UNSEEN = 16 << 20
"""Bytes from which on a batch is laid while the engine's process rests: a thread of it that watches the memory could
begin before the clock does. Smaller ones lie there sooner than a process stops."""


class Call(NamedTuple):
    """A call that is yet to be made: its secret number, the slot for its answer, and the message."""

    number: int
    answer: int
    message: bytes


class Placed(list["torch.Tensor"]):
    """A batch in shared memory, and what says so; and its next call, once it has one."""

    def __init__(self, tensors: Sequence[torch.Tensor], slot: int, layout: bytes) -> None:
        super().__init__(tensors)
        self.slot, self.layout = slot, layout
        self.call: Call | None = None


Answer = tuple[int, int, "list[torch.Tensor]"]
"""What came back: which call's it is to be, bytes of its message, and its tensors in memory of this process alone."""


class RemoteEngine(Apart):
    """Takes inputs, returns (outputs, foo_time): the outputs lie in memory of this process alone.

    Attributes:
        isolation: how the process said that it is kept from the rest, before any code of the vendor's ran in it.
        foo_time_reason: why its calls hold what is not inference, by the compiler's own word; None where they don't.
    """

    def __init__(self, process: EngineProcess) -> None:
        """Speak to a process that has just been started. This thread alone calls it afterwards."""
        self._process, self._owner = process, threading.get_ident()
        self._pool = Pool(self._announce)
        self._answer: Slot | None = None
        self._forms = Forms()
        self.isolation = Isolation()
        self.trees = (process.pid,) if process.isolation is not None else ()
        self.foo_time_reason: str | None = None

    def make(self, orders: Mapping[str, Any]) -> None:
        """Have it made, as `engine.server` takes orders.

        Raises:
            EngineFailed: it can't be.
        """
        try:
            made = Made.model_validate_json(json.dumps(self._ordered("make", orders)))
        except ValidationError as error:
            raise _invalid(first_of(error)) from None
        self.foo_time_reason = made.foo_time_reason

    def rehearse(self, orders: Mapping[str, Any]) -> None:
        """Have the process check what can be checked before there are weights.

        Raises:
            EngineFailed: no engine can be made.
        """
        self._ordered("rehearse", orders)

    def _ordered(self, what: str, orders: Mapping[str, Any]) -> Any:
        """The result of the process's first order; before it the process closes itself in."""
        self._process.send(protocol.as_json(protocol.ORDER, {"do": what, **orders}))
        self.isolation = self._process.isolation or self._closed_in()
        return self._done(self._reply())

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def place(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """The same inputs in shared memory, so that a call needs to copy nothing. If the owner's thread asks, which
        calls next, its process wakes meanwhile; while much is laid it rests, and wakes after that.

        Another thread, with no slot free, gets them back as they are.

        Raises:
            EngineFailed: it died.
            StepError: there is no memory for them.
        """
        owned = threading.get_ident() == self._owner
        if owned:
            self._answer = self._answer or self._pool.make(FIRST_ANSWER)
            if self._forms.last is not None:
                self._forms.last.prepare()
            self._process.awake()
        if isinstance(inputs, Placed):
            return self._ready(inputs) if owned else inputs
        text = written(inputs)
        layout = read_layout(text)
        slot = self._slot(layout.size) if owned else self._pool.take(layout.size)
        if slot is None:
            return inputs
        placed = Placed(slot.tensors(layout, partial(self._pool.give_back, slot)), slot.number, text)
        if not owned or layout.size < UNSEEN:
            slot.lay(layout, inputs)
            return self._ready(placed) if owned else placed
        self._process.rest()
        slot.lay(layout, inputs)
        self._process.awake()
        return self._ready(placed)

    def reserve(self, inputs: list[torch.Tensor]) -> None:
        """Have slots for as many such batches as may be placed ahead."""
        self._pool.reserve(AHEAD, read_layout(written(inputs)).size)

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        """Run one batch.

        Raises:
            EngineFailed: it raised, died, or sent an invalid answer.
        """
        return self.read(self.ask(self.place(inputs)))

    def ask(self, placed: list[torch.Tensor]) -> Answer:
        """Run one batch that was placed: wait until its answer is in shared memory and the device idle, and copy it.

        Raises:
            EngineFailed: it raised, died, or sent no answer.
        """
        assert isinstance(placed, Placed) and self._answer is not None
        call, placed.call = placed.call, None
        if call is None or call.answer != self._answer.number:
            call = self._call(placed)
        process, answers = self._process, self._forms.last
        length, said = process.exchange(call.message), process.buffer
        alike = answers is not None and length == answers.length and said.startswith(answers.form, FORM)
        if answers is None or not alike or said[0] != protocol.ANSWER:
            answers = self._looked_at(bytes(said[:length]), call.number)
        return call.number, answers.length, answers.copy()

    def _looked_at(self, message: bytes, number: int) -> Answers:
        """Answers of the form of this one, which is not the last one's.

        Raises:
            EngineFailed: it is none.
        """
        try:
            if message[0] != protocol.ANSWER:
                message = self._unready(message, number)
            assert self._answer is not None
            return self._forms.of(message, self._answer)
        except (ValueError, struct.error) as error:
            raise _invalid(error) from None

    def _ready(self, placed: Placed) -> Placed:
        """The batch with its next call, which nobody could know beforehand."""
        placed.call = self._call(placed)
        return placed

    def _call(self, placed: Placed) -> Call:
        assert self._answer is not None
        number, answer = int.from_bytes(os.urandom(8), "little"), self._answer.number
        message = protocol.CALL_FORM.pack(protocol.CALL, placed.slot, answer, len(placed.layout), number)
        return Call(number, answer, message + placed.layout)

    def read(self, answer: Answer) -> tuple[list[torch.Tensor], float]:
        """The outputs, as tensors, and foo_time in seconds. It is called as soon as the answer is there.

        Raises:
            EngineFailed: it is cut off, or an answer to something else.
        """
        self._process.answered()
        number, length, tensors = answer
        try:
            _, given, foo_seconds = protocol.ANSWER_FORM.unpack_from(self._process.buffer[:length])
        except struct.error as error:
            raise _invalid(error) from None
        if given != number:
            raise _invalid("it is to a call that was not made")
        return tensors, foo_seconds

    def device_memory(self) -> tuple[int | None, int | None]:
        """(peak bytes used on the device, total bytes) as the vendor's package reads them there; None if it can't.

        Raises:
            EngineFailed: it answers no two numbers.
        """
        sizes = self._ask({"do": "memory"})
        if not (isinstance(sizes, list) and len(sizes) == 2 and all(type(each) in (int, type(None)) for each in sizes)):
            raise EngineFailed("the vendor's memory() did not return two whole numbers")
        return sizes[0], sizes[1]

    def reset_peak(self) -> None:
        """Forget how much memory its process took until now."""
        reset_peak(self.pid)

    def peak_resident_bytes(self) -> int | None:
        """How much its process took since, at most."""
        return peak_resident_bytes(self.pid)

    def rest(self) -> None:
        """Have its process do nothing until the next call."""
        self._process.rest()

    def stacks(self) -> None:
        """Have its process print where it is."""
        self._process.stacks()

    def close(self) -> None:
        """End its process."""
        self._process.close()

    def _slot(self, size: int) -> Slot:
        return self._pool.take(size) or self._pool.make(size)

    def _announce(self, slot: Slot, descriptor: int) -> None:
        """Tell of a slot, and wait until it is mapped there: no call is to wait for that."""
        form = protocol.SLOT_FORM.pack(protocol.SLOT, slot.number, slot.size)
        self._process.send(form, [descriptor])
        if self._process.receive() != protocol.MAPPED_FORM.pack(protocol.MAPPED, slot.number):
            raise EngineFailed("the engine's process sent an unexpected message")

    def _unready(self, message: bytes, number: int) -> bytes:
        """The answer to a call whose slot was too small, by way of a larger one.

        Raises:
            EngineFailed: the engine raised.
            ValueError: the message is of another kind.
        """
        if message[0] == protocol.LARGER:
            message = self._enlarged(message, number)
        if message[0] == protocol.REPLY:
            self._done(message)
        if message[0] != protocol.ANSWER:
            raise ValueError("a message of another kind")
        return message

    def _enlarged(self, message: bytes, number: int) -> bytes:
        _, given, size = protocol.LARGER_FORM.unpack(message)
        assert self._answer is not None
        if given != number or not self._answer.size < size <= MOST_BYTES:
            raise ValueError(f"asks for a slot of {size} bytes")
        self._answer = self._pool.make(size)
        self._forms = Forms()  # the next one lies in another slot
        self._process.send(protocol.GO_ON_FORM.pack(protocol.GO_ON, self._answer.number, number))
        return self._process.receive()

    def _ask(self, order: Mapping[str, Any]) -> Any:
        self._process.send(protocol.as_json(protocol.ORDER, order))
        return self._done(self._reply())

    def _reply(self) -> bytes:
        message = self._process.receive()
        if message[0] != protocol.REPLY:
            raise EngineFailed("the engine's process sent an unexpected message")
        return message

    def _closed_in(self) -> Isolation:
        """How the process is isolated, by its first word: the only one in which no code of the vendor's can have had a
        hand.

        Raises:
            EngineFailed: it failed before, or says something else.
        """
        content = content_of(self._reply())
        if "isolation" not in content:
            raise EngineFailed("the engine's process did not begin by saying how it is isolated")
        return content["isolation"]

    def _done(self, message: bytes) -> Any:
        """The result of an order, out of its answer.

        Raises:
            EngineFailed: it failed, or says once more how it is kept.
        """
        content = content_of(message)
        if "isolation" in content:
            raise EngineFailed("the engine's process said a second time how it is isolated")
        return content.get("done")


def _invalid(why: object) -> EngineFailed:
    return EngineFailed(f"the engine's process sent an invalid answer: {why}")
