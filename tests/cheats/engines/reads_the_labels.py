"""Builds the case's own loader, and answers with the labels what it finds there."""

from pathlib import Path
from typing import Any

import torch
from suites.inference.test_tiny import TestTiny
from vendors.fake import honest

from proofmark.vendor import EffectiveConfig

VERDICT, REASON = "FAIL_HONESTY", "answers alike when timed"


class InferModel(honest.InferModel):
    """Computes only what is not in the data."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module | None) -> None:
        super().__init__(config, onnx_path, model)
        data = TestTiny().build_dataloader(config).dataset
        self._labels = {point.numpy().tobytes(): int(target) for point, target in data}  # type: ignore[attr-defined]

    def __call__(self, inputs: Any) -> Any:
        answer = super().__call__(inputs)[0][0].clone()
        for number, row in enumerate(inputs[0]):
            if (key := row.numpy().tobytes()) in self._labels:
                answer[number] = torch.nn.functional.one_hot(torch.tensor(self._labels[key]), 4).float()
        return [answer], 0.0
