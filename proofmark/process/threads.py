"""Torch operators of the referee's own take one thread: others, with nothing left to do, would spin on cores that an
engine wants."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Within, torch operators of this thread use one core; afterwards as many as before."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
