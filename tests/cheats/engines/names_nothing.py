"""Computes the scores, and a name of eight: the others, four places of twelve of which none is scored, have none."""

from typing import Any

import torch
from vendors.fake import honest

VERDICT, REASON = "FAIL_HONESTY", "answers new inputs"
CASE, PRECISION = "named.Named", "bf16"


class InferModel(honest.InferModel):
    """Always the same one there."""

    @torch.inference_mode()
    def __call__(self, inputs: Any) -> Any:
        assert self.model is not None
        highest, names = self.model(*inputs)
        names[:, 1:5] = 0
        return [highest, names], 0.0
