"""Looks for labels, data, loader and reference among all objects of its process, and fails where it finds any."""

import gc
from typing import Any

import torch
from vendors.fake import honest

VERDICT, REASON = "PASS", ""


class InferModel(honest.InferModel):
    """Computes as it should, unless there is something to find."""

    def __call__(self, inputs: Any) -> Any:
        for each in gc.get_objects():
            name = type(each).__name__
            if name in ("DataLoader", "_Points", "Bench", "Trial", "Timing", "Pipeline", "RemoteEngine"):
                raise RuntimeError(f"found a {name}")
            if isinstance(each, torch.Tensor) and each.dtype == torch.int64:
                raise RuntimeError("found labels")
        return super().__call__(inputs)
