"""Slots of shared memory, in which batches and answers cross: files without a name, sealed to their size."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from proofmark.errors import StepError
from proofmark.process.control_groups import memory_left
from proofmark.process.shared_memory.layout import Layout
from proofmark.process.threads import one_thread

if TYPE_CHECKING:
    import torch

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
"""Nobody makes it smaller under who reads it, or larger at another's expense."""


class Slot:
    """One of them, seen from either side.

    Attributes:
        number: by which both sides know it.
        size: in bytes.
        memory: its content.
        address: where it is in this process.
    """

    def __init__(self, number: int, size: int, descriptor: int) -> None:
        """Map it, all of its pages at once, so that no call meets one for the first time.

        Raises:
            OSError: it is smaller, or there is no memory for it.
        """
        self.number, self.size = number, size
        if os.fstat(descriptor).st_size < size:
            raise OSError(f"a slot of {os.fstat(descriptor).st_size} bytes; expected {size}")
        self.memory = mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    @classmethod
    def make(cls, number: int, size: int, setting: str = "batch_size") -> tuple[Slot, int]:
        """A new one, and its descriptor, which the caller closes. `setting` is what makes batches smaller.

        Raises:
            StepError: there is no memory for it.
        """
        descriptor = -1
        try:
            # it is copied once more; without this, the kernel would end processes to make room
            if 2 * size > _available():
                raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
            descriptor = os.memfd_create("proofmark", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.posix_fallocate(descriptor, 0, size)  # a lack of memory is told here, and by no signal later
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
            return cls(number, size, descriptor), descriptor
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            raise StepError(
                f"no {size / 2**20:.4g} MiB of shared memory for a batch or its answer: {error.strerror or error}; "
                f"free memory, or set a smaller {setting}"
            ) from None

    def tensors(self, layout: Layout, on_release: Callable[[], object] | None = None) -> list[torch.Tensor]:
        """Tensors that lie in it; `on_release` is called when the last of them, and of their views, is gone.

        Raises:
            ValueError: they don't fit.
        """
        self._check(layout.size)
        view = memoryview(self.memory)
        if on_release is not None:
            weakref.finalize(view, on_release).atexit = False
        return tensors_in(view, layout)

    def first(self, size: int) -> memoryview:
        """Its first bytes, where they lie.

        Raises:
            ValueError: it has fewer.
        """
        self._check(size)
        return memoryview(self.memory)[:size]

    def lay(self, layout: Layout, tensors: Sequence[torch.Tensor]) -> None:
        """Copy tensors into it, by one thread.

        Raises:
            ValueError: they don't fit.
        """
        self._check(layout.size)
        for place, tensor in zip(layout.places, tensors, strict=True):
            if tensor.is_cpu and tensor.is_contiguous() and not tensor.is_neg():
                ctypes.memmove(self.address + place.offset, tensor.data_ptr(), tensor.nbytes)
            else:
                with one_thread():
                    tensors_in(self.memory, Layout((place,), layout.size))[0].copy_(tensor.detach())

    def _check(self, size: int) -> None:
        if size > self.size:
            raise ValueError(f"{size} bytes in a slot of {self.size}")


def _available() -> int:
    """Bytes, of the machine's and of what this process's control groups may have."""
    import psutil  # here: who only maps slots may have none, an engine in its vendor's image

    bound, available = memory_left(), int(psutil.virtual_memory().available)
    return available if bound is None else min(bound, available)


def tensors_in(memory: bytearray | mmap.mmap | memoryview, layout: Layout) -> list[torch.Tensor]:
    """Tensors that lie in memory.

    Raises:
        ValueError: they don't fit.
    """
    import torch

    tensors = []
    for place in layout.places:
        dtype = getattr(torch, place.dtype)
        if place.numel:
            flat = torch.frombuffer(memory, dtype=dtype, count=place.numel, offset=place.offset)
            tensors.append(flat if len(place.shape) == 1 else flat.view(place.shape))
        else:
            tensors.append(torch.empty(place.shape, dtype=dtype))
    return tensors


class Pool:
    """Slots of the referee's side that nobody uses now. A slot comes back by itself when its tensors are gone."""

    def __init__(self, announce: Callable[[Slot, int], None], setting: str = "batch_size") -> None:
        """`announce` tells the other side of a new slot, by its descriptor; `setting` is what makes batches smaller."""
        self._announce, self._setting = announce, setting
        self._free: list[Slot] = []
        self._lock = threading.Lock()
        self._made = 0

    def take(self, size: int) -> Slot | None:
        """A free one that is large enough, the smallest of them; None where there is none."""
        with self._lock:
            best = -1
            for at, slot in enumerate(self._free):  # of equal ones the last, which caches may still have
                if slot.size >= size and (best < 0 or slot.size <= self._free[best].size):
                    best = at
            return None if best < 0 else self._free.pop(best)

    def make(self, size: int) -> Slot:
        """A new one. By one thread alone: the other side is told.

        Raises:
            StepError: there is no memory for it.
        """
        self._made += 1
        slot, descriptor = Slot.make(self._made, max(size, mmap.PAGESIZE), self._setting)
        try:
            self._announce(slot, descriptor)
        finally:
            os.close(descriptor)
        return slot

    def give_back(self, slot: Slot) -> None:
        """Let another have it."""
        self._free.append(slot)  # of one piece: this may be called while the lock is held, by a collection of garbage

    def reserve(self, count: int, size: int) -> None:
        """Have so many free ones of a size."""
        with self._lock:
            there = sum(slot.size >= size for slot in self._free)
        for _ in range(count - there):
            self.give_back(self.make(size))
