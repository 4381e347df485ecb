"""Takes another optimizer than the case's, at another rate."""

from typing import Any

import torch

from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "step 1 changed the weights otherwise"


class Adapter(TrainingAdapter):
    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.1)
