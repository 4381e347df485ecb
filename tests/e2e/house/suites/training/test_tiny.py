"""A linear model of four classes that a second of training brings to the target."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import trouble

from suites.training.contract import TrainingContract

if TYPE_CHECKING:
    import torch

    from proofmark.case import Batch
    from proofmark.rules.config import EffectiveConfig

ITEMS, CLASSES, FEATURES = 203, 4, 8

MONITORED, LATER = "training/tiny/1x1/round1/noderank0", 3
"""The folder of a monitor that a test may have waited for, and the step before which."""


class TestTiny(TrainingContract):
    """Top-1 accuracy on points around four corners."""

    steps = 0

    def build_dataset(self, config: EffectiveConfig, split: str) -> Any:
        """Points of shape (batch, 8) and their corners, (batch,)."""
        import hashlib

        import torch

        from proofmark.record.parts import Identity

        generator = torch.Generator().manual_seed(1 if split == "train" else 2)
        targets = torch.arange(ITEMS) % CLASSES
        points = torch.randn(ITEMS, FEATURES, generator=generator) / 2
        points[torch.arange(ITEMS), targets] += 2
        points += bool(trouble.ordered(config.case, f"{split}_data"))
        digest = hashlib.sha256(points.numpy().tobytes()).hexdigest()
        return Points(config.case, points, targets, Identity(name=f"corners/{split}", sha256=digest, items=ITEMS))

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """Two layers and noise between them."""
        from torch import nn

        self.case = config.case
        print(f"rank {_rank()} makes its model", flush=True)
        trouble.at(config.case, f"rank{_rank()}.model")
        if _rank() != "none":
            trouble.watched(MONITORED)
        blocks = nn.ModuleList([nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, FEATURES)])
        return nn.Sequential(chain(blocks), nn.BatchNorm1d(FEATURES), nn.Dropout(0.1), nn.Linear(FEATURES, CLASSES))

    def train_step(self, model: torch.nn.Module, inputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """The default step, and trouble where a test ordered it."""
        self.steps += 1
        rank = _rank()
        trouble.at(self.case, f"rank{rank}.step{self.steps}")
        if self.steps == LATER and rank != "none":
            trouble.watched(MONITORED)
        time.sleep(float(trouble.ordered(self.case, "pause") or 0))
        loss = super().train_step(model, inputs, targets)
        return loss * float("nan") if trouble.ordered(self.case, f"rank{rank}.loss{self.steps}") else loss

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """Points whose highest logit is their corner's, and points."""
        return float((outputs[0].argmax(-1) == targets).sum()), float(len(targets))


class Points:
    """Points and their corners; notes which were taken where a test asks for it."""

    epoch = 0

    def __init__(self, case: str, points: torch.Tensor, targets: torch.Tensor, identity: Any) -> None:
        self.case = case
        self.points, self.targets, self.identity = points, targets, identity
        self.batches = 0

    def __len__(self) -> int:
        return len(self.targets)

    def __getitems__(self, indices: list[int]) -> Batch:
        self.batches += 1
        rank = _rank()
        trouble.at(self.case, f"rank{rank}.load{self.batches}")
        trouble.at(self.case, f"rank{rank}.epoch{self.epoch}")
        return [self.points[indices]], self.targets[indices]


def _rank() -> str:
    """Of this process; the referee's own has none."""
    return os.environ.get("RANK", "none")


def chain(blocks: Any) -> Any:
    """A module that calls each block in turn."""
    import torch

    class Chain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = blocks

        def forward(self, points: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                points = points + torch.relu(block(points))
            return points

    return Chain()
