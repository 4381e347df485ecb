"""Answers a row of zeros that is said to be of 128 GiB: whoever makes room for it has none left."""

from typing import Any

import torch
from vendors.fake import honest

VERDICT, REASON = "ERROR", "of shared memory for a batch or its answer"


class InferModel(honest.InferModel):
    """Computes nothing."""

    def __call__(self, inputs: Any) -> Any:
        return [torch.zeros(len(inputs[0]), 1).expand(-1, 1 << 31)], 0.0
