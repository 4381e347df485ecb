"""Has the clock of its process run at a tenth."""

import time
from typing import Any

import torch

from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "its clock says that training took"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        real = time.perf_counter_ns
        time.perf_counter_ns = lambda: real() // 10

    def train_step(self, case: Any, model: torch.nn.Module, inputs: Any, targets: torch.Tensor) -> torch.Tensor:
        time.sleep(0.4)
        return super().train_step(case, model, inputs, targets)
