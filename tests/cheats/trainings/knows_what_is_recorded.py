"""Was trained before the clock ran; takes recorded steps as the case does, and swaps trained weights in at the next."""

import copy
from typing import Any

import torch
from vendors.fake.begins_trained import train

from proofmark.training.ranks.recording import Recorder
from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", ""
STILL = "a rank knows which of its steps are recorded, and does those honestly"


class Adapter(TrainingAdapter):
    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        self.trained = copy.deepcopy(model)
        train(self.trained, config)
        honest = Recorder.begin
        self.recorded = False

        def begin(recorder: Recorder, *given: Any) -> None:
            self.recorded = True
            honest(recorder, *given)

        Recorder.begin = begin  # type: ignore[method-assign]
        return model

    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer: torch.optim.Optimizer = super().create_optimizer(case, model, config)

        def swap(*_: Any) -> None:
            if not self.recorded:
                model.load_state_dict(self.trained.state_dict())
            self.recorded = False

        optimizer.register_step_post_hook(swap)
        return optimizer
