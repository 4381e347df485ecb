"""Answers in the same memory at every call, which is nothing to object to: answers are copied under the clock."""

from __future__ import annotations

import torch
from vendors.fake import honest


class InferModel(honest.InferModel):
    """One buffer for all answers."""

    buffer = torch.empty(0)

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        (answer,), foo_time = super().__call__(inputs)
        if not len(self.buffer):
            self.buffer = torch.empty_like(answer)
        view = self.buffer[: len(answer)]
        view.copy_(answer)
        return [view], foo_time
