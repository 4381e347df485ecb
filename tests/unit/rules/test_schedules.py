"""The learning rate from the first step to the last."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from proofmark.rules.config import EffectiveConfig
from tests.unit.training.tokens import Tokens


def rates(steps: int, **task: Any) -> list[float]:
    """Of each step, at a learning rate of 1."""
    config = EffectiveConfig("training", "tokens", "embedded", "acme", task, {"learning_rate": 1.0})
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler, found = Tokens().create_scheduler(optimizer, config, steps), []
    for _ in range(steps):
        found += scheduler.get_last_lr()
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize(
    "task, wanted",
    [
        ({"schedule": "constant"}, [1.0] * 10),
        ({"schedule": "linear"}, [1 - step / 10 for step in range(10)]),
        ({"schedule": "linear", "warmup": 0.2}, [1 / 3, 2 / 3, *[1 - step / 8 for step in range(8)]]),
        ({"schedule": "constant", "warmup": 0.1}, [0.5, *[1.0] * 9]),
        ({"schedule": "step", "step_share": 0.3}, [*[1.0] * 3, *[0.1] * 3, *[0.01] * 3, 0.001]),
        ({"schedule": "step", "step_share": 1.0}, [1.0] * 10),
    ],
)
def test_rates(task: dict[str, Any], wanted: list[float]) -> None:
    assert rates(10, **task) == pytest.approx(wanted)


def test_one_cycle_rises_and_falls() -> None:
    found = rates(10, schedule="one_cycle")
    assert max(found) == pytest.approx(1.0) and found[0] < 0.1 and found[-1] < 0.1
