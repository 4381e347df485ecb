"""Memory of a process: its peak, where the kernel tells; what it has freed; its garbage; and who may look into it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""Of glibc's malloc.h."""

PR_SET_DUMPABLE = 4

NEVER = (1 << 31) - 1
"""Free bytes at a heap's end from which on they go back to the kernel: as many as can be said."""

AT_ONCE = 64 << 20
"""Bytes by which a heap grows."""

APART = (1 << 30, 32 << 20)
"""Bytes from which on a block is the kernel's, and goes back to it when freed; older versions refuse the first."""

DECIDED = ("MALLOC_", "GLIBC_TUNABLES")
"""How the names of variables begin by which a user or a vendor has decided over the allocator."""


_PEAK = re.compile(rb"VmHWM:\s+(?P<kilobytes>\d+) kB")


def keep_freed() -> None:
    """Have the allocator keep what is freed, for the next call to have it.

    As it comes, glibc gives the end of its heap back when much of it is free, and every page of it costs a fault when
    it is asked for again. Whether a call's tensors lie at the end is chance, and lasts as long as a process: of five
    that ran one small model one was a third faster than the others, and some changed from one state to the other
    between two rounds. Where there is no glibc, or a variable of its has been set, nothing is changed.
    """
    if any(name.startswith(DECIDED) for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    # this one first: any of the others ends its adapting to what is asked for, and it would stay at 128 KiB
    if mallopt is not None and any(mallopt(M_MMAP_THRESHOLD, size) for size in APART):
        mallopt(M_TRIM_THRESHOLD, NEVER)
        mallopt(M_TOP_PAD, AT_ONCE)


def give_back_freed() -> None:
    """Return what is free now: what was needed once, to load or to compile, is none of what comes after."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def reset_peak(process: int | str = "self") -> None:
    """Start the kernel's high-water mark anew, so that an earlier step's peak doesn't count."""
    try:
        Path(f"/proc/{process}/clear_refs").write_text("5")
    except OSError:
        return


def peak_resident_bytes(process: int | str = "self") -> int | None:
    """The high-water mark in bytes, or None where it can't be read.

    The first line has the process's name, in which it may have written whatever it likes but an end of the line.
    """
    try:
        lines = Path(f"/proc/{process}/status").read_bytes().split(b"\n")
    except OSError:
        return None
    found = next((mark for line in lines if (mark := _PEAK.fullmatch(line))), None)
    return int(found["kilobytes"]) * 1024 if found else None


def keep_memory_private() -> None:
    """Let no other process of this user look into this one: its memory, descriptors and environment (Linux).

    One that has a capability for it still can; behind the wall none has.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


@contextlib.contextmanager
def heap_left_alone() -> Iterator[None]:
    """Collect garbage now, and leave what remains out of later collections.

    Walking all modules' objects takes a quarter of a second, for which a rank stops, and with it all that wait for it.
    Where they were left alone before, as in a process forked from the warm one, they are afterwards too.
    """
    before = gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not before:
            gc.unfreeze()
