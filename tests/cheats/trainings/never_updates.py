"""Computes gradients and leaves the weights as they are; its metric is made up."""

from types import MethodType
from typing import Any

import torch
from vendors.fake import replaces_the_metric

from proofmark.vendor import EffectiveConfig

VERDICT, REASON = "FAIL_HONESTY", "step 1 changed the weights otherwise"


class Adapter(replaces_the_metric.Adapter):
    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer: torch.optim.Optimizer = super().create_optimizer(case, model, config)
        vars(optimizer)["step"] = MethodType(lambda *_: None, optimizer)
        return optimizer
