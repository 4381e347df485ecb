"""What an agent changes of torchrun: that it says the same, sooner."""

from __future__ import annotations

import inspect
import sys

import pytest
from torch.distributed.elastic.rendezvous import dynamic_rendezvous

from proofmark.training.node.agent_forks import _know_callers_at_once


def recorded() -> str:
    return str(dynamic_rendezvous.get_method_name())  # type: ignore[no-untyped-call]


def joins() -> str:
    return recorded()


def test_a_rendezvous_knows_who_called_it_and_looks_for_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    own = dynamic_rendezvous.get_method_name
    monkeypatch.setattr(dynamic_rendezvous, "get_method_name", own)  # to be as before afterwards
    assert joins() == "joins"
    _know_callers_at_once()
    monkeypatch.setattr(inspect, "stack", None)
    assert joins() == "joins" and dynamic_rendezvous.get_method_name is not own


def test_a_torch_without_that_rendezvous_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.distributed.elastic.rendezvous", None)
    _know_callers_at_once()
