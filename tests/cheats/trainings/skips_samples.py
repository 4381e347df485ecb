"""Computes on half of each batch."""

from typing import Any

import torch

from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "the gradients of step 1 are"


class Adapter(TrainingAdapter):
    def train_step(self, case: Any, model: torch.nn.Module, inputs: Any, targets: torch.Tensor) -> torch.Tensor:
        half = len(targets) // 2
        return super().train_step(case, model, [inputs[0][:half]], targets[:half])
