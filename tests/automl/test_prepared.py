"""What makes itself ready before it has a device looks for none: which of them it may see, a library reads once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from proofmark.automl.trial.work import Prepared
from tests.automl.searches import ROOT
from tests.automl.test_examined import served, trial


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of an accelerator that this machine seems to have."""
    found: list[str] = []

    def heard(name: str, answer: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda *given, **named: found.append(name) or answer(given)

    for owner, name, answer in (
        (torch.accelerator, "is_available", lambda given: True),
        (torch.accelerator, "current_device_index", lambda given: 0),
        (torch.accelerator, "set_device_index", lambda given: None),
        (torch.Tensor, "pin_memory", lambda given: given[0]),
    ):
        monkeypatch.setattr(owner, name, heard(name, answer))
    return found


def test_a_trial_looks_for_no_device_before_it_has_one(tmp_path: Path, asked: list[str]) -> None:
    spec = trial(tmp_path, 1)
    prepared = Prepared.of(spec, 0, served(spec))
    assert not asked
    for supply in prepared.supplies:
        supply.pin()
    for inputs, targets in prepared.data.validation.load([[0, 1], [2]]):
        assert inputs[0].shape[1:] == (3, 8, 8) and targets.dtype == torch.int64
    next(prepared.data.train.batches(0, 0))
    assert asked.count("pin_memory") >= 6, "each batch's inputs and targets"


def test_a_device_that_pins_no_memory_is_fed_without(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a training's ranks on it are: torch's part for a chip need not."""

    def refused(tensor: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("this device has no pinned memory")

    monkeypatch.setattr(torch.Tensor, "pin_memory", refused)
    spec = trial(tmp_path, 1)
    prepared = Prepared.of(spec, 0, served(spec))
    for supply in prepared.supplies:
        supply.pin()
    assert next(prepared.data.train.batches(0, 0))[0][0].shape[1:] == (3, 8, 8)
    assert len(list(prepared.data.validation.load([[0, 1], [2]]))) == 2


LOOKS = """
import sys
from contextlib import suppress
from pathlib import Path
import torch
from proofmark.automl.trial.work import Prepared
from proofmark.process.threads import in_the_background
from tests.automl.test_examined import served, trial

class Guard(torch._C._acc.DeviceGuard):
    def type_(self):
        return torch._C._autograd.DeviceType.PrivateUse1

def of_devices():
    names = []
    for each in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # a thread that has ended since
            names.append(each.read_text().strip())
    return [name for name in names if name.startswith("pt_autograd")]

torch._C._acc.register_python_privateuseone_device_guard(Guard())  # of one device
spec = trial(Path(sys.argv[1]), 1)
prepared = in_the_background(lambda: Prepared.of(spec, 0, served(spec)))
print(*of_devices())
forward, step = prepared.counted()
print(*of_devices(), forward < step)
"""


def test_nor_does_what_it_counts(tmp_path: Path) -> None:
    """A process's first backward pass asks how many there are, and starts a thread for each, as urgent as its own."""
    looks = [sys.executable, "-c", LOOKS, str(tmp_path)]
    looked = subprocess.run(looks, cwd=ROOT, capture_output=True, text=True)
    assert looked.stdout.split("\n") == ["", "pt_autograd_0 True", ""], looked.stderr
