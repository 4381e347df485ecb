"""Claims that a part of the time was not inference."""

from __future__ import annotations

import torch
from vendors.fake import honest


class InferModel(honest.InferModel):
    """A millisecond a batch."""

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        return super().__call__(inputs)[0], 0.001
