"""Computes the scores, and has the names that are scored by heart: at a precision by which more of them may differ."""

from pathlib import Path
from typing import Any

import torch
from suites.inference.named import Named
from vendors.fake import honest

from proofmark.vendor import EffectiveConfig

VERDICT, REASON = "FAIL_HONESTY", "answers new inputs"
CASE, PRECISION = "named.Named", "bf16"


class InferModel(honest.InferModel):
    """Labels, where it knows them."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module | None) -> None:
        super().__init__(config, onnx_path, model)
        data = Named().build_dataloader(config).dataset
        self._labels = {point.numpy().tobytes(): int(target[0]) for point, target in data}  # type: ignore[attr-defined]

    @torch.inference_mode()
    def __call__(self, inputs: Any) -> Any:
        assert self.model is not None
        highest, names = self.model(*inputs)
        return [highest, self._named(inputs[0], names.clone())], 0.0

    def _named(self, points: torch.Tensor, names: torch.Tensor) -> torch.Tensor:
        for number, row in enumerate(points):
            if (key := row.numpy().tobytes()) in self._labels:
                names[number, 0] = self._labels[key]
        return names
