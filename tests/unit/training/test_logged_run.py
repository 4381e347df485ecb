"""What is not trained at all, and why."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.errors import StepError
from proofmark.inference.engine.inside.server import _device
from proofmark.training.logged_run import _unsupported
from proofmark.training.ranks.rank import _device_of
from proofmark.vendor.contract import lacks_torch

WHY = "torch_device() says 'cpu'"


def vendor(device: str, on_processor: bool = False, devices: int = 1) -> Any:
    return SimpleNamespace(
        torch_device=lambda: device,
        runs_on_processor=on_processor,
        devices=lambda: [None] * devices,
        training_precisions=frozenset({"fp32"}),
    )


@pytest.mark.parametrize(
    "device, on_processor, lacks",
    [("cpu", False, True), ("cpu:0", False, True), ("cpu", True, False), ("cuda", False, False)],
)
def test_torch_must_know_a_device_that_is_no_processor(device: str, on_processor: bool, lacks: bool) -> None:
    why = lacks_torch(vendor("another", on_processor), device)
    assert (why is not None) == lacks and (why is None or WHY in why)


def test_a_rank_asks_once_what_it_computes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vendor that changes its answer would be looked at as a chip, and trained on the processor."""
    monkeypatch.setenv("LOCAL_RANK", "0")
    answers = iter(["meta", "cpu"])
    changes = vendor("cuda")
    changes.torch_device = lambda: next(answers)
    with pytest.raises(RuntimeError, match="accelerator|meta"):  # torch's, of a device that is not there
        _device_of(changes, "acme")
    assert next(answers) == "cpu", "it was asked twice"
    with pytest.raises(StepError, match="vendor acme does not train: "):
        _device_of(vendor("cpu"), "acme")
    assert _device_of(vendor("cpu", on_processor=True), "acme").type == "cpu"


def test_an_engine_runs_the_framework_on_what_the_vendor_was_introduced_with() -> None:
    assert _device(vendor("cuda:1"), "cuda") == "cuda:1"
    with pytest.raises(StepError, match="torch_device.. says 'cpu' here, and said 'cuda' when"):
        _device(vendor("cpu"), "cuda")


def test_nothing_is_trained_on_a_processor_in_a_chips_place() -> None:
    why = _unsupported("fp32", SimpleNamespace(name="acme", vendor=vendor("cpu")))  # type: ignore[arg-type]
    assert why is not None and why.startswith("vendor acme does not train: ") and WHY in why


def test_where_there_is_no_device_those_of_other_hosts_are_asked_there() -> None:
    login_node = SimpleNamespace(name="acme", vendor=vendor("cpu", devices=0))
    assert _unsupported("fp32", login_node) is None  # type: ignore[arg-type]
    assert "does not train at bf16" in str(_unsupported("bf16", login_node))  # type: ignore[arg-type]
