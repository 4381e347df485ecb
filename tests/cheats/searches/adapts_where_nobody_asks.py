"""Tells the session that it adapts nothing, and computes the loss its own way where it trains."""

from typing import Any

from proofmark.vendor import TrainingAdapter

VERDICT, REASON, ADAPTS = "INSUFFICIENT", "it must last at least", "train_step"
CONFIG = "{warmup_1: 1, warmup_2: 1, max_trials: 2}"


class Adapter(TrainingAdapter):
    def train_step(self, case: Any, model: Any, inputs: Any, targets: Any) -> Any:
        return case.train_step(model, inputs, targets)
