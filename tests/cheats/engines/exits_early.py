"""Answers what is easy by a rule, and computes the rest."""

from typing import Any

import torch
from vendors.fake import honest

VERDICT, REASON = "FAIL_HONESTY", "answers "


class InferModel(honest.InferModel):
    """Where one feature stands out, that is the class."""

    def __call__(self, inputs: Any) -> Any:
        (answer,), foo_time = super().__call__(inputs)
        first, second = inputs[0][:, :4].topk(2).values.unbind(1)
        guess = torch.nn.functional.one_hot(inputs[0][:, :4].argmax(1), 4) * answer.abs().max()
        return [torch.where((first - second > 1.5)[:, None], guess, answer)], foo_time
