"""Loads weights that were trained before, as those in the inference suite's cache are."""

import torch
from suites.training.test_tiny import TestTiny

from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "does not begin from the weights that the case made from the seed"


def train(model: torch.nn.Module, config: EffectiveConfig) -> None:
    """Before any clock runs."""
    case = TestTiny()
    (points,), targets = case.build_dataset(config, "train").__getitems__(list(range(203)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(points), targets).backward()
        optimizer.step()


class Adapter(TrainingAdapter):
    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        train(model, config)
        return model
