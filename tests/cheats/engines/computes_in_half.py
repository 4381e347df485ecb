"""Computes in float16 where float32 was asked for."""

import copy
from typing import Any

import torch
from vendors.fake import honest

VERDICT, REASON = "FAIL_HONESTY", "answers new inputs"


class InferModel(honest.InferModel):
    """Its model in half of the bits."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        assert self.model is not None
        self._half = copy.deepcopy(self.model).half()

    @torch.inference_mode()
    def __call__(self, inputs: Any) -> Any:
        return [self._half(inputs[0].half()).float()], 0.0
