"""Prints the environment that it has, the one that its process began with, and all that its memory holds of it."""

import os
from pathlib import Path

import torch
from vendors.fake import honest

from proofmark.vendor import EffectiveConfig

VERDICT, REASON = "PASS", ""


class InferModel(honest.InferModel):
    """Honest but for that: no token of the user's is there."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module | None) -> None:
        super().__init__(config, onnx_path, model)
        print(dict(os.environ), Path("/proc/self/environ").read_text(errors="replace"), flush=True)
