"""Has steps of its own choice recorded, whatever its agent has drawn, and takes all others at another rate."""

from typing import Any

import torch

from proofmark.training.ranks.recording import Recorder
from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "drawn were"
RUNS = [range(1, 4), range(5, 8)]


class Adapter(TrainingAdapter):
    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer = super().create_optimizer(case, model, config)
        honest: Any = type(optimizer).step
        taken: list[bool] = []

        def due(recorder: Recorder) -> bool:
            number, steps = len(taken) + 1, recorder._steps
            steps.first = number in RUNS[0]
            steps.begins, steps.ends = (number in {run[at] for run in RUNS} for at in (0, -1))
            return any(number in run for run in RUNS)

        class Faster(type(optimizer)):  # type: ignore[misc]
            def step(self, *given: Any, **named: Any) -> None:
                taken.append(True)
                scheduled = [group["lr"] for group in self.param_groups]
                for group in self.param_groups:
                    group["lr"] *= 1 if any(len(taken) in run for run in RUNS) else 2
                honest(self, *given, **named)
                for group, rate in zip(self.param_groups, scheduled, strict=True):
                    group["lr"] = rate

        Recorder.due = due  # type: ignore[method-assign]
        optimizer.__class__ = Faster
        return optimizer
