"""Extensions of torch, by which it knows a vendor's devices: the vendor's code, which torch's import brings along."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
from collections.abc import Iterator

from proofmark.finding import installed
from proofmark.process.warm.main import cores_kept

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
"""Variable that says whether it does: all but 1 keeps it from that."""

LATER = "later"
"""Its value where we do so, until `load`. Another is the user's, who wants none."""


def hold_back() -> None:
    """Keep torch's import from loading extensions, here and in what this process starts."""
    if _wanted():
        os.environ[AUTOLOAD] = LATER


def import_without() -> None:
    """Import torch, if there is one, and hold them back. This thread keeps its cores, for all that it starts."""
    hold_back()
    with cores_kept(), contextlib.suppress(Exception):  # who needs it will see why
        importlib.import_module("torch")


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Keep torch's import from loading extensions meanwhile, here alone: what this process starts may need them."""
    before = os.environ.get(AUTOLOAD)
    hold_back()
    try:
        yield
    finally:
        del os.environ[AUTOLOAD]
        os.environ |= {} if before is None else {AUTOLOAD: before}


@functools.cache
def load() -> None:
    """Load the extensions that torch would have loaded when it was imported. A second time does nothing."""
    if _wanted() and installed("torch.backends"):
        import torch

        torch._import_device_backends()  # type: ignore[no-untyped-call]


def _wanted() -> bool:
    """Whether the user has them loaded."""
    return os.environ.get(AUTOLOAD, "1") in ("1", LATER)
