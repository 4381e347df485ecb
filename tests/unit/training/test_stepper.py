"""What a step of several ranks waits for, before it computes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from proofmark.training.feeding.batches import Share
from proofmark.training.ranks import stepper
from proofmark.training.ranks.communication import EVERY, CommunicationMeter
from proofmark.training.ranks.model.strategy import Place
from proofmark.training.ranks.stepper import Stepper


def test_a_rank_whose_data_is_late_is_waited_for_in_communication(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first exchange of a step is that of the batches' weights; else those who wait would seem to compute."""
    clock = iter([1_000_000_000, 1_050_000_000])
    monkeypatch.setattr("time.perf_counter_ns", lambda: next(clock))
    monkeypatch.setattr(stepper, "summed", lambda values, place: [2 * values[0]])
    place = Place(0, 0, 2, torch.device("cpu"))
    made: Any = object.__new__(Stepper)
    made._case, made._place = SimpleNamespace(loss_weight=len), place
    made.communication = CommunicationMeter(torch.nn.Linear(1, 1), place)
    made.communication.reason = None
    shares, batches = [Share([0, 1], 2)], [([torch.ones(2, 1)], torch.ones(2))]
    computed = iter([0, 60_000_000])
    with made.communication.step(EVERY, lambda: next(computed)):
        assert made._weights(shares, batches) == [1.0]
    totals = made.communication.totals()
    assert totals is not None and totals["seconds"] == pytest.approx(0.05) and totals["of"] == pytest.approx(0.06)
