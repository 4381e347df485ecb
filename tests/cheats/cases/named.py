"""A case whose model answers names: of twelve points each the highest score and whose it is, of which one is scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.inference.test_tiny import CLASSES, FEATURES, ITEMS

from suites.inference import test_tiny

if TYPE_CHECKING:
    import torch

    from proofmark.case import Loader
    from proofmark.rules.config import EffectiveConfig

PLACES = 12


class Named(test_tiny.TestTiny):
    """Top-1 accuracy of the first point's name; corners are so near that a fifth lies nearer to another."""

    def build_dataloader(self, config: EffectiveConfig, split: str = "validation") -> Loader:
        """Points of shape (batch, 12, 8) and their corners, (batch, 12)."""
        import hashlib

        import torch

        from proofmark.record.parts import Identity

        generator = torch.Generator().manual_seed(1 if split == "train" else 2)
        targets = torch.randint(0, CLASSES, (ITEMS, PLACES), generator=generator)
        points = torch.randn(ITEMS, PLACES, FEATURES, generator=generator)
        points += 2 * torch.nn.functional.one_hot(targets, FEATURES)
        dataset = test_tiny._Points(points, targets)
        digest = hashlib.sha256(points.numpy().tobytes()).hexdigest()
        dataset.identity = Identity(name=f"named/{split}", sha256=digest, items=ITEMS)
        return torch.utils.data.DataLoader(dataset, batch_size=config.batch_size, collate_fn=test_tiny._collate)

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """Points to scores and names; while it is trained, to all logits."""
        import torch

        class Likeliest(torch.nn.Linear):
            def forward(self, points: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
                logits = super().forward(points)
                if self.training:
                    return logits
                highest, names = logits.max(-1)
                return highest, names

        self.case = config.case
        return Likeliest(FEATURES, CLASSES)

    def shortfall(
        self, model: torch.nn.Module, inputs: list[torch.Tensor], outputs: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        """Of the names."""
        import torch

        assert isinstance(model, torch.nn.Linear)
        logits = torch.nn.functional.linear(inputs[0], model.weight, model.bias)
        given = logits.gather(-1, outputs[1].unsqueeze(-1)).squeeze(-1)
        return [(logits.amax(-1) - given) / logits.std(-1)]

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """First points that are named rightly, and first points."""
        return float((outputs[1][:, 0] == targets[:, 0]).sum()), float(len(targets))


class Unspoken(Named):
    """The same, where nobody says how near to being chosen a name was."""

    def shortfall(
        self, model: torch.nn.Module, inputs: list[torch.Tensor], outputs: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        """Nothing."""
        return []
