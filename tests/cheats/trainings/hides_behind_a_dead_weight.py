"""Takes another optimizer after the first steps, beside a weight of 1e9 whose unit is never active: to the length of
all weights, and to its decay, the others' updates are nothing. It keeps the state that the case's optimizer has."""

from typing import Any

import torch

from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "changed the weights otherwise"


class Adapter(TrainingAdapter):
    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer = super().create_optimizer(case, model, config)
        other, honest = torch.optim.SGD(model.parameters(), lr=0.5), type(optimizer).step
        first: Any = model[0]  # type: ignore[index]
        dead = first.blocks[0].bias
        taken: list[bool] = []

        class Later(type(optimizer)):  # type: ignore[misc]
            def step(self, *given: Any, **named: Any) -> None:
                taken.append(True)
                before = [parameter.clone() for parameter in model.parameters()]
                honest(self, *given, **named)
                if len(taken) <= 3:
                    return
                decayed = dead[7].clone()
                with torch.no_grad():
                    for parameter, kept in zip(model.parameters(), before, strict=True):
                        parameter.copy_(kept)
                other.step()
                with torch.no_grad():
                    dead[7] = -1e9 if len(taken) == 4 else decayed

        optimizer.__class__ = Later
        return optimizer
