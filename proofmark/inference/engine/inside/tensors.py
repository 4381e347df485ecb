"""The tensors of a call: a batch's where it lies, and an answer's as it is laid.

Both are under the referee's clock, right before and right after a computation that has left nothing of this process in
the processor's caches: each line of Python, and each call into torch, takes several microseconds there. So what was
looked at once is not looked at again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from proofmark.errors import StepError
from proofmark.measuring.window import check_answer, is_dense
from proofmark.process.shared_memory.layout import Layout, Place, read_layout, written

if TYPE_CHECKING:
    import torch

    from proofmark.process.shared_memory.slots import Slot

SPARE = 64
"""Calls of a batch in one slot for which tensors are made at once, at most: for twice as many each time. By the second
of them all that makes one lies in the caches."""

FORMS = 4
"""Forms of batches, or of answers, that are known at once: a pass ends with a smaller one."""


class _Batch(NamedTuple):
    """A form of batches, as messages have it, and how many samples those have; tensors that lie in the slot, each with
    its address; and as many for each call as there are calls to come."""

    form: bytes
    rows: int
    lying: list[tuple[torch.Tensor, int]]
    made: int
    spare: list[list[torch.Tensor]]


class Inputs:
    """The batches of one slot: new tensors for each call, as an engine may change the form of those that it is given.

    They are not made one by one when an answer has been sent: where the referee goes on upon this very processor, this
    process would come to that when the next call has been made, under the clock. What they share is where they lie, and
    that too an engine may change: `share_memory_()` moves it.
    """

    def __init__(self, slot: Slot) -> None:
        self._slot, self._known = slot, list[_Batch]()

    def take(self, form: bytearray) -> tuple[list[torch.Tensor], int]:
        """The tensors of a batch for one call, and its samples.

        Raises:
            ValueError: it is no form, or they don't fit.
        """
        for batch in self._known:
            if batch.form == form and batch.spare:
                for tensor, address in batch.lying:
                    if tensor.data_ptr() != address:
                        break
                else:
                    return batch.spare.pop(), batch.rows
        return self._made(bytes(form))

    def _made(self, form: bytes) -> tuple[list[torch.Tensor], int]:
        lying, others = self._slot.tensors(read_layout(form)), [batch for batch in self._known if batch.form != form]
        made = min(SPARE, 2 * next((batch.made for batch in self._known if batch.form == form), 1))
        spare = [[tensor.detach() for tensor in lying] for _ in range(made)]
        batch = _Batch(form, lying[0].shape[0], [(tensor, tensor.data_ptr()) for tensor in lying], made, spare)
        self._known = [*others, batch][-FORMS:]
        return spare.pop(), batch.rows


class _Output(NamedTuple):
    """What one is, where it lies in a slot, once more as a layout, and its bytes as ctypes has them of an address."""

    dtype: torch.dtype
    shape: torch.Size
    begin: int
    end: int
    alone: Layout
    at: Callable[[int], Any]


class _Answer(NamedTuple):
    """A form of answers, as messages have it, the bytes that one takes of a slot, and each of its outputs."""

    form: bytes
    size: int
    outputs: list[_Output]


class Outputs:
    """How answers lie in a slot. One that looks as the last one to as many samples did, as it most often does, is laid
    and nothing else."""

    def __init__(self) -> None:
        self._known = dict[int, _Answer]()
        self._plain: Any = None

    def lay_alike(self, returned: Any, rows: int, slot: Slot) -> bytes | None:
        """Lay an answer that looks as the last one did: its form. None where it doesn't, or can't be laid so."""
        known = self._known.get(rows)
        if known is None or type(returned) is not tuple or len(returned) != 2 or slot.size < known.size:
            return None
        outputs, foo_seconds = returned
        if type(outputs) is not list or len(outputs) != len(known.outputs) or type(foo_seconds) is not float:
            return None
        plain, memory = self._plain, slot.memory
        try:
            for output, (dtype, shape, begin, end, alone, at) in zip(outputs, known.outputs):  # noqa: B905 (as long)
                if type(output) is not plain or output.dtype is not dtype or output.shape != shape:
                    return None
                if output.is_cpu and output.is_contiguous() and not output.is_neg():
                    memory[begin:end] = at(output.data_ptr())
                elif is_dense(output):
                    slot.lay(alone, [output])
                else:
                    return None
        except RuntimeError:  # it lies nowhere, a sparse one say
            return None
        return known.form

    def look(self, returned: Any, rows: int) -> tuple[bytes, Layout, list[torch.Tensor]]:
        """What an answer has that does not look as the last one did: its form, that as a layout, and its outputs. The
        next one is held against it.

        Raises:
            StepError: it is no answer.
        """
        import torch

        outputs, _ = check_answer(returned, rows)
        try:
            form = written(outputs)
        except ValueError as error:
            raise StepError(f"the outputs have {error}") from None
        layout = read_layout(form)
        if len(self._known) == FORMS:
            self._known.clear()
        self._plain = torch.Tensor
        seen = [_seen(output, place, layout.size) for output, place in zip(outputs, layout.places, strict=True)]
        if all(output.end > output.begin for output in seen):  # nothing lies at the address of nothing
            self._known[rows] = _Answer(form, layout.size, seen)
        return form, layout, outputs


def _seen(output: torch.Tensor, place: Place, size: int) -> _Output:
    end, alone = place.offset + output.nbytes, Layout((place,), size)
    return _Output(output.dtype, output.shape, place.offset, end, alone, (ctypes.c_char * output.nbytes).from_address)
