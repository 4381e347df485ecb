"""From its fourth step on computes no gradients but the last layer's, and has that outweigh all others: its weights are
made 4,096 times smaller, and what goes into it as much larger, which is the same function with a steeper slope."""

from typing import Any

import torch

from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "are others in many matrices"

STEEPER, RATE = 2.0**12, 0.5


class Adapter(TrainingAdapter):
    taken = 0

    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer = super().create_optimizer(case, model, config)
        honest: Any = type(optimizer).step
        adapter = self
        *_, head = model.children()

        class Later(type(optimizer)):  # type: ignore[misc]
            def step(self, *given: Any, **named: Any) -> None:
                adapter.taken += 1
                before = [each.detach().clone() for each in model.parameters()]
                honest(self, *given, **named)
                if adapter.taken > 3:
                    with torch.no_grad():
                        for parameter, kept in zip(model.parameters(), before, strict=True):
                            parameter.copy_(kept)
                        head.weight -= RATE / STEEPER**2 * head.weight.grad
                        head.bias -= RATE * head.bias.grad

        optimizer.__class__ = Later
        return optimizer

    def train_step(self, case: Any, model: Any, inputs: Any, targets: Any) -> Any:
        trunk, norm, dropout, head = model.children()
        if self.taken < 3:
            return super().train_step(case, model, inputs, targets)
        with torch.no_grad():
            if self.taken == 3:
                norm.weight *= STEEPER
                norm.bias *= STEEPER
                head.weight /= STEEPER
            hidden = norm(trunk(inputs[0]))
        return case.loss([head(dropout(hidden))], targets)
