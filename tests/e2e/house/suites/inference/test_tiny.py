"""A linear model of four classes that two epochs of milliseconds bring to the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trouble

from suites.inference.contract import InferenceContract

if TYPE_CHECKING:
    import torch

    from proofmark.case import Loader
    from proofmark.rules.config import EffectiveConfig

ITEMS, CLASSES, FEATURES = 100, 4, 8

BATCHES = 7
"""Of a pass."""


@pytest.fixture(scope="class", autouse=True)
def troubled_init(case_run: Any) -> None:
    """When the case's run is there and has not begun."""
    trouble.at("parent", "init")


class TestTiny(InferenceContract):
    """Top-1 accuracy on points around four corners."""

    scored = 0

    def build_dataloader(self, config: EffectiveConfig, split: str = "validation") -> Loader:
        """Points of shape (batch, 8) and their corners, (batch,)."""
        import hashlib

        import torch

        from proofmark.record.parts import Identity

        trouble.at(config.case, "data")
        generator = torch.Generator().manual_seed(1 if split == "train" else 2)
        targets = torch.arange(ITEMS) % CLASSES
        points = torch.randn(ITEMS, FEATURES, generator=generator) / 4
        points[torch.arange(ITEMS), targets] += 2
        dataset = _Points(points, targets)
        digest = hashlib.sha256(points.numpy().tobytes()).hexdigest()
        dataset.identity = Identity(name=f"corners/{split}", sha256=digest, items=ITEMS)
        return torch.utils.data.DataLoader(dataset, batch_size=config.batch_size, collate_fn=_collate)

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """One layer."""
        import torch

        trouble.at(config.case, "model")
        self.case = config.case
        model = torch.nn.Linear(FEATURES, CLASSES)
        model.register_forward_pre_hook(lambda *_: _troubled_framework())
        return model

    @property
    def input_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Asked for in the export and nowhere else."""
        trouble.at(self.case, "export")
        return ("points",)

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """Points whose highest logit is their corner's, and points."""
        logits = outputs[0]
        if self.scored % BATCHES == 0:
            trouble.watched("inference/tiny")
        self.scored += 1
        if logits.isnan().any():
            return float("nan"), float(len(targets))
        return float((logits.argmax(-1) == targets).sum()), float(len(targets))


def _troubled_framework() -> None:
    """The framework computes so; first asked in framework validation."""
    import torch

    if torch.is_inference_mode_enabled():
        trouble.at("worker", "framework")


class _Points(list[Any]):
    def __init__(self, points: torch.Tensor, targets: torch.Tensor) -> None:
        super().__init__(zip(points, targets, strict=True))


def _collate(pairs: list[Any]) -> Any:
    import torch

    points, targets = zip(*pairs, strict=True)
    return [torch.stack(points)], torch.stack(targets)
