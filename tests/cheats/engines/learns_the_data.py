"""Remembers what it answered to each sample, and computes only those that it has not met."""

import time
from typing import Any

import torch
from vendors.fake import honest

VERDICT, REASON = "FAIL_HONESTY", "fails 'no "


class InferModel(honest.InferModel):
    """A millisecond a sample that is new."""

    known: dict[bytes, torch.Tensor] = {}

    def __call__(self, inputs: Any) -> Any:
        keys = [row.numpy().tobytes() for row in inputs[0]]
        new = [number for number, key in enumerate(keys) if key not in self.known]
        if new:
            time.sleep(0.001 * len(new))
            (answers,) = super().__call__([inputs[0][new]])[0]
            self.known |= {keys[number]: answer.clone() for number, answer in zip(new, answers, strict=True)}
        return [torch.stack([self.known[key] for key in keys])], 0.0
