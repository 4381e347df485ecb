"""Honest and slow."""

from __future__ import annotations

import time

import torch
from vendors.fake import honest


class InferModel(honest.InferModel):
    """Fifty milliseconds a batch."""

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        time.sleep(0.05)
        return super().__call__(inputs)
