"""Keeps the case's optimizer and schedule for two steps, and takes all others at ten times that rate."""

from typing import Any

import torch

from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "step 3 changed the weights otherwise"


class Adapter(TrainingAdapter):
    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer = super().create_optimizer(case, model, config)
        honest: Any = type(optimizer).step
        taken: list[bool] = []

        class Faster(type(optimizer)):  # type: ignore[misc]
            def step(self, *given: Any, **named: Any) -> None:
                taken.append(True)
                scheduled = [group["lr"] for group in self.param_groups]
                for group in self.param_groups:
                    group["lr"] *= 10 if len(taken) > 2 else 1
                honest(self, *given, **named)
                for group, rate in zip(self.param_groups, scheduled, strict=True):
                    group["lr"] = rate

        optimizer.__class__ = Faster
        return optimizer
