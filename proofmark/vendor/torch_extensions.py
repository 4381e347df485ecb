"""Extensions of torch, by which it knows a vendor's devices: the vendor's code, which torch's import brings along."""

from __future__ import annotations

import os

from proofmark.finding import installed

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
"""Variable that says whether it does."""


def hold_back() -> None:
    """Have torch's import bring none along, here and in what this process starts."""
    os.environ[AUTOLOAD] = "0"


def load() -> None:
    """What torch would have loaded when it was imported, where there is any."""
    if installed("torch.backends"):
        import torch

        torch._import_device_backends()  # type: ignore[no-untyped-call]
