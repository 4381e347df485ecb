"""What a feeder has handed out, where its agent reads it: a page that no rank behind a wall can reach."""

from __future__ import annotations

import ctypes
import mmap
import os

LAID, SAMPLES, TOKENS, WHOLE, EPOCH, BATCH, EVALUATED, CODE, FEEDER, SERVER = range(10)
"""Indices into the page."""

NO_TEXT = -1


class Counts:
    """The counts of one feeder, which writes them, with a process that it forks; its agent reads them."""

    def __init__(self, descriptor: int) -> None:
        """Map it, for as long as this process lives, and close its descriptor, so that nobody opens it once more."""
        try:
            self._page = _mapped(descriptor)
        finally:
            os.close(descriptor)

    @staticmethod
    def make() -> int:
        """The descriptor of a new one, for both sides."""
        descriptor = os.memfd_create("proofmark-counts", os.MFD_CLOEXEC)
        os.posix_fallocate(descriptor, 0, mmap.PAGESIZE)
        return descriptor

    @property
    def laid(self) -> int:
        """Samples that the rank could have seen by now: more than it has taken, by those that lie ahead."""
        return self._page[LAID]

    @property
    def samples(self) -> int:
        """Samples that the rank has taken."""
        return self._page[SAMPLES]

    @property
    def tokens(self) -> int | None:
        """Tokens of the samples taken; None as long as they are no text."""
        tokens = self._page[TOKENS]
        return None if tokens == NO_TEXT else tokens

    @property
    def whole(self) -> bool:
        """Whether the rank takes no more."""
        return bool(self._page[WHOLE])

    def begin(self) -> None:
        """Note that nothing was handed out yet."""
        self._page[TOKENS] = NO_TEXT

    @property
    def began(self) -> tuple[int, int]:
        """Epoch, and global batch in it, from which the rank says that it trains."""
        return self._page[EPOCH], self._page[BATCH]

    def begin_at(self, epoch: int, batch: int) -> None:
        """Note from which epoch, and which global batch in it, the rank says that it trains."""
        self._page[EPOCH], self._page[BATCH] = epoch, batch

    def lay(self, samples: int) -> None:
        """Note that the rank can see so many samples more."""
        self._page[LAID] += samples

    def take(self, samples: int, tokens: int | None) -> None:
        """Note that the rank has taken so many samples more."""
        self._page[SAMPLES] += samples
        if tokens is not None:
            self._page[TOKENS] = tokens + max(self._page[TOKENS], 0)

    @property
    def evaluated(self) -> int:
        """Samples that the rank could have been evaluated on by now; each counts as often as it was asked for."""
        return self._page[EVALUATED]

    def evaluate(self, samples: int) -> None:
        """Note that the rank can be evaluated on so many samples more."""
        self._page[EVALUATED] += samples

    @property
    def processes(self) -> list[int]:
        """Of the feeder, and of the process that loads what its rank is evaluated on; empty before both are there."""
        return [self._page[FEEDER], self._page[SERVER]] if self._page[FEEDER] and self._page[SERVER] else []

    def note_process(self, serves: bool) -> None:
        """Note that this one is the feeder, or the one that serves what its rank is evaluated on."""
        self._page[SERVER if serves else FEEDER] = os.getpid()

    @property
    def code(self) -> int:
        """Exit code of the feeder, negative for a signal; 0 where it has none yet."""
        return self._page[CODE]

    def note_code(self, code: int) -> None:
        """Note that the feeder has ended."""
        self._page[CODE] = code

    def end(self) -> None:
        """Note that the rank takes no more."""
        self._page[WHOLE] = 1


def _mapped(descriptor: int) -> ctypes.Array[ctypes.c_int64]:
    """A shared page. Python's own mapping would keep a copy of the descriptor, to be found in /proc."""
    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_ssize_t)
    address = call(None, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, descriptor, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(number := ctypes.get_errno(), os.strerror(number))
    return (ctypes.c_int64 * (mmap.PAGESIZE // 8)).from_address(address)
