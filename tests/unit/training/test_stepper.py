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


@pytest.mark.parametrize("fused", [False, True])
def test_a_recorded_step_is_taken_as_any_other(fused: bool) -> None:
    """An optimizer that divides by the loss scale itself may have gradients in half precision, which torch unscales for
    nobody else."""
    dtype = torch.float16 if fused else torch.float32
    held: list[float] = []

    def taken(recorder: Any) -> torch.Tensor:
        torch.manual_seed(0)
        made: Any = object.__new__(Stepper)
        made.model = torch.nn.Linear(4, 1).to(dtype)
        made._begun = True
        made.optimizer = torch.optim.AdamW(made.model.parameters(), lr=0.1, fused=fused)
        made._scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        made._scheduler = torch.optim.lr_scheduler.ConstantLR(made.optimizer)
        made._weights = lambda shares, batches: [1.0]

        def micro_step(batch: torch.Tensor, weight: float, last: bool) -> torch.Tensor:
            loss = made.model(batch).sum()
            made._scaler.scale(loss).backward()
            return loss.detach()

        made._micro_step = micro_step
        made.step([Share([0], 1)], [torch.ones(1, 4, dtype=dtype)], lambda: None, recorder)
        weight: torch.Tensor = made.model.weight.detach()
        return weight

    recorder = SimpleNamespace(hold=lambda model, scale: held.append(float(model.weight.grad.mean()) / scale))
    assert torch.equal(taken(recorder), taken(None)) and held == [1.0]
