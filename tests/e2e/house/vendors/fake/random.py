"""Guesses."""

from __future__ import annotations

import torch
from vendors.fake import honest


class InferModel(honest.InferModel):
    """Fast and wrong."""

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        return [torch.rand(len(inputs[0]), 4)], 0.0
