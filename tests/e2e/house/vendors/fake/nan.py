"""Answers what is not a number."""

from __future__ import annotations

import torch
from vendors.fake import honest


class InferModel(honest.InferModel):
    """The right shape, and nothing in it."""

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        (answer,), foo_time = super().__call__(inputs)
        return [answer * float("nan")], foo_time
