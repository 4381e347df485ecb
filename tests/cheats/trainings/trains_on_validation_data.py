"""Trains on the samples that it is evaluated on."""

from typing import Any

import torch
from suites.training.test_tiny import TestTiny

from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "the gradients of step 1 are"


class Adapter(TrainingAdapter):
    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        self.data = TestTiny().build_dataset(config, "validation")
        return model

    def train_step(self, case: Any, model: torch.nn.Module, inputs: Any, targets: torch.Tensor) -> torch.Tensor:
        return super().train_step(case, model, *self.data.__getitems__(list(range(len(targets)))))
