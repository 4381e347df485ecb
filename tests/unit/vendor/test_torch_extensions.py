"""Extensions of torch are held back until the vendor's code may run; whose user switches them off gets none."""

from __future__ import annotations

import os

import pytest
import torch

from proofmark.vendor import torch_extensions
from proofmark.vendor.torch_extensions import AUTOLOAD


@pytest.mark.parametrize("users, loaded", [(None, 1), ("1", 1), ("0", 0), ("false", 0)])
def test_the_users_switch_is_heeded(monkeypatch: pytest.MonkeyPatch, users: str | None, loaded: int) -> None:
    """One that can't be loaded would end all engines."""
    calls = list[int]()
    monkeypatch.setattr(torch, "_import_device_backends", lambda: calls.append(1))
    monkeypatch.setattr(torch_extensions, "installed", lambda group: ["acme"])
    monkeypatch.setenv(AUTOLOAD, "1")
    monkeypatch.delenv(AUTOLOAD)
    if users is not None:
        monkeypatch.setenv(AUTOLOAD, users)
    for _ in range(2):  # who is started holds them back again
        torch_extensions.hold_back()
    assert not torch._is_device_backend_autoload_enabled(), "torch's own import loads none"
    torch_extensions.load.__wrapped__()
    assert len(calls) == loaded and (users == os.environ[AUTOLOAD] or loaded)
