"""A case of which each model has the same numbers in one place, as published weights have in all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.inference.test_tiny import CLASSES, FEATURES

from suites.inference import test_tiny

if TYPE_CHECKING:
    import torch

    from proofmark.rules.config import EffectiveConfig

PUBLISHED = [0.01, 0.02, 0.03, 0.04]


class Published(test_tiny.TestTiny):
    """The tiny one, and numbers that are added to its scores."""

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """One layer and those."""
        import torch

        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(FEATURES, CLASSES)
                self.published = torch.nn.Parameter(torch.tensor(PUBLISHED), requires_grad=False)

            def forward(self, points: torch.Tensor) -> torch.Tensor:
                scores: torch.Tensor = self.layer(points) + self.published
                return scores

        return Model()

    input_names = ("points",)
