"""ResNet-50 v1.5: image classification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.data.given import OnGivenFolders
from suites.training.contract import TrainingContract

if TYPE_CHECKING:
    import torch

    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingData


class TestResNet50(OnGivenFolders, TrainingContract):
    """Top-1 accuracy on scanned digits (embedded) or ImageNet-1k (standard)."""

    imports = ("transformers.models.resnet.modeling_resnet",)

    def build_dataset(self, config: EffectiveConfig, split: str) -> TrainingData:
        """Images of shape (batch, channels, image_size, image_size) and their classes, (batch,)."""
        from suites.data.images.loaders import image_dataset

        return image_dataset(config, split)

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """Each bottleneck starts as the identity: the model then trains in a few epochs."""
        from suites.models import resnet50

        return resnet50(config)

    def create_optimizer(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        """SGD where the profile has a momentum, AdamW otherwise."""
        if "momentum" not in config:
            return super().create_optimizer(model, config)
        from torch.optim import SGD

        return SGD(
            model.parameters(), lr=config.learning_rate, momentum=config.momentum, weight_decay=config.weight_decay
        )

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """Images whose highest logit is their class's, and images."""
        return float((outputs[0].argmax(-1) == targets).sum()), float(len(targets))
