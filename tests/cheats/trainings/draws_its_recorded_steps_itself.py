"""Has the steps right after the first ones recorded, whatever chance would have, and takes all others at another
rate."""

from typing import Any

import torch

from proofmark.training.ranks import recording
from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "changed the weights otherwise"


class _Never:
    """Of the source of chance by which a later run of steps is drawn."""

    class SystemRandom:
        """All but one."""

        @staticmethod
        def random() -> float:
            """No later run gives way."""
            return 1 - 1e-12


class Adapter(TrainingAdapter):
    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        vars(recording)["random"] = _Never
        optimizer = super().create_optimizer(case, model, config)
        honest: Any = type(optimizer).step
        taken: list[bool] = []

        class Faster(type(optimizer)):  # type: ignore[misc]
            def step(self, *given: Any, **named: Any) -> None:
                taken.append(True)
                scheduled = [group["lr"] for group in self.param_groups]
                for group in self.param_groups:
                    group["lr"] *= 2 if len(taken) > 6 else 1
                honest(self, *given, **named)
                for group, rate in zip(self.param_groups, scheduled, strict=True):
                    group["lr"] = rate

        optimizer.__class__ = Faster
        return optimizer
