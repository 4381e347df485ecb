"""Writes over all shared pages that it has, before each step: those of its own batches, and no count."""

import gc
from typing import Any

import torch

from proofmark.process.shared_memory.slots import Slot
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "the gradients of step 1 are"


class Adapter(TrainingAdapter):
    def train_step(self, case: Any, model: torch.nn.Module, inputs: Any, targets: torch.Tensor) -> torch.Tensor:
        for slot in (each for each in gc.get_objects() if isinstance(each, Slot)):
            slot.memory[:] = bytes(slot.size)
        return super().train_step(case, model, inputs, targets)
