"""Answers where an engine's process lays them, by their forms, and copies in memory of this process alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proofmark.inference.engine import protocol
from proofmark.process.shared_memory.layout import read_layout
from proofmark.process.shared_memory.slots import Slot, tensors_in

if TYPE_CHECKING:
    import torch

FORM = protocol.ANSWER_FORM.size
"""Where an answer's form begins in its message."""

KNOWN = 4
"""Forms of answers that are known at once: a pass ends with a smaller batch."""

READY, MOST = 64, 1 << 20
"""Copies for which there is memory at once, at most, and bytes of that: for twice as many copies each time. Of larger
ones there is memory for one."""


class Answers:
    """Takes copies of answers that lie in a slot.

    Tensors of such a copy are there before it is taken, and many are made at once: when a computation has just ended, a
    call into torch takes 20 to 50 microseconds, and all that follows it in a row takes one.

    Attributes:
        form: of each of them, as messages have it.
        length: of such a message, in bytes.
    """

    def __init__(self, message: bytes, slot: Slot) -> None:
        """Of the same form as one, by its message.

        Raises:
            ValueError: it has no form, or the slot is too small.
        """
        self.form, self.length = message[FORM:], len(message)
        self._layout = read_layout(self.form)
        self._lying = slot.first(self._layout.size)
        self._ready: list[tuple[memoryview, list[torch.Tensor]]] = []
        self._made = 0

    def prepare(self) -> None:
        """Have memory for the next copy."""
        if not self._ready:
            self._made = max(1, min(2 * self._made, READY, MOST // max(1, self._layout.size)))
            for _ in range(self._made):
                content = bytearray(self._layout.size)
                self._ready.append((memoryview(content), tensors_in(content, self._layout)))

    def put_aside(self) -> None:
        """The next answer is of another form: there is no memory for a large one that may not come again."""
        if self._layout.size > MOST:
            self._ready.clear()

    def copy(self) -> list[torch.Tensor]:
        """The one that lies there now."""
        self.prepare()
        content, tensors = self._ready.pop()
        content[:] = self._lying
        return tensors


class Forms:
    """Answers of the forms that came last, all in one slot.

    Attributes:
        last: those of the last one's form; None before the first.
    """

    def __init__(self) -> None:
        self.last: Answers | None = None
        self._known = dict[bytes, Answers]()

    def of(self, message: bytes, slot: Slot) -> Answers:
        """Those of the form of this message, which is not the last one's.

        Raises:
            ValueError: it has no form, or the slot is too small.
        """
        if self.last is not None:
            self.last.put_aside()
        self.last = self._known.get(message[FORM:])
        if self.last is None:
            self.last = Answers(message, slot)
            self._known = dict([*self._known.items(), (self.last.form, self.last)][-KNOWN:])
        return self.last
