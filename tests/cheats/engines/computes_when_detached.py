"""Answers with a tensor that has a `detach` of its own."""

from typing import Any

import torch
from vendors.fake import honest

VERDICT, REASON = "ERROR", "output 0 has methods of its own (detach)"


class InferModel(honest.InferModel):
    """Computes nothing when it is called."""

    def __call__(self, inputs: Any) -> Any:
        answer = torch.empty(len(inputs[0]), 4)
        answer.detach = lambda: super(InferModel, self).__call__(inputs)[0][0]  # type: ignore[method-assign]
        return [answer], 0.0
