"""Says that its training took a second less, as far as its agent lets a clock differ: most of a short one."""

import time
from typing import Any

import torch

from proofmark.training.ranks.clock import Clock
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "PASS", ""
TAKES = "0.6"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        self._slow, honest = iter([1.0]), Clock.seconds

        def less(clock: Clock) -> dict[str, float]:
            seconds = honest(clock)
            took = seconds["train_seconds"]
            share = max(took - 0.6, took / 20) / took if took else 1.0
            return {name: each * share for name, each in seconds.items()}

        Clock.seconds = less  # type: ignore[method-assign]

    def train_step(self, case: Any, model: torch.nn.Module, inputs: Any, targets: torch.Tensor) -> torch.Tensor:
        time.sleep(next(self._slow, 0.0))
        return super().train_step(case, model, inputs, targets)
