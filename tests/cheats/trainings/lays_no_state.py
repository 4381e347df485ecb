"""Takes what its optimizer kept out of what is recorded, and steps at ten times the rate after the first steps."""

from typing import Any

import torch

from proofmark.training.ranks.recording import Recorder
from proofmark.training.spec import STATE
from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "what its optimizer kept was not recorded"


class Adapter(TrainingAdapter):
    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer = super().create_optimizer(case, model, config)
        honest, end, due = type(optimizer).step, Recorder.end, Recorder.due
        taken: list[bool] = []

        def ended(recorder: Recorder, *given: Any) -> None:
            end(recorder, *given)
            (recorder._folder / STATE).unlink(missing_ok=True)

        def later(recorder: Recorder) -> bool:
            drawn = recorder._steps
            drawn._next = max(drawn._next, 4)  # what is drawn right after the first steps needs no state
            return due(recorder)

        Recorder.due = later  # type: ignore[method-assign]
        Recorder.end = ended  # type: ignore[method-assign]

        class Faster(type(optimizer)):  # type: ignore[misc]
            def step(self, *given: Any, **named: Any) -> None:
                taken.append(True)
                scheduled = [group["lr"] for group in self.param_groups]
                for group in self.param_groups:
                    group["lr"] *= 10 if len(taken) > 6 else 1
                honest(self, *given, **named)
                for group, rate in zip(self.param_groups, scheduled, strict=True):
                    group["lr"] = rate

        optimizer.__class__ = Faster
        return optimizer
