"""Puts ten parameters and a rule that knows the data in the place of the case's model."""

import torch

from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "does not have the parameters of the case's"


class _Knows(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.few = torch.nn.Parameter(torch.zeros(10))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return points[:, :4] + self.few.sum()


class Adapter(TrainingAdapter):
    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        return _Knows()
