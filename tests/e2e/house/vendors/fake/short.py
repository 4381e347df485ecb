"""Right in every full batch, wrong in the last short one."""

from __future__ import annotations

import torch
from vendors.fake import honest


class InferModel(honest.InferModel):
    """An engine that was built for one batch size."""

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        (answer,), foo_time = super().__call__(inputs)
        return [answer if len(answer) == 16 else -answer], foo_time
