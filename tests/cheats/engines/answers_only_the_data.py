"""Answers garbage to inputs that it has not met in the warm-up or in the rounds, in the hope that nobody looks."""

from typing import Any

import torch
from suites.inference.test_tiny import TestTiny
from vendors.fake import honest

VERDICT, REASON = "FAIL_HONESTY", "answers "


class InferModel(honest.InferModel):
    """Knows the data, and computes nothing else."""

    def __init__(self, config: Any, *given: Any) -> None:
        super().__init__(config, *given)
        data: Any = TestTiny().build_dataloader(config).dataset
        self._known = {point.numpy().tobytes() for point, _ in data}

    def __call__(self, inputs: Any) -> Any:
        (answer,), foo_time = super().__call__(inputs)
        known = [row.numpy().tobytes() in self._known for row in inputs[0]]
        return [answer * torch.tensor(known)[:, None]], foo_time
