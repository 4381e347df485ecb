"""Takes the case's optimizer for the first step, and for all others another at another rate."""

from __future__ import annotations

from typing import Any

import torch

from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "step 2 changed the weights otherwise"


class Adapter(TrainingAdapter):
    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer = super().create_optimizer(case, model, config)
        other, honest, begun = torch.optim.SGD(model.parameters(), lr=0.5), type(optimizer).step, []

        class Later(type(optimizer)):  # type: ignore[misc]
            def step(self, *given: Any, **named: Any) -> Any:
                begun.append(True)
                return honest(self, *given, **named) if len(begun) == 1 else other.step()

        optimizer.__class__ = Later
        return optimizer
