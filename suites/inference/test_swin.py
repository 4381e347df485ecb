"""Swin Transformer: image classification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.data.given import OnGivenFolders
from suites.inference.contract import InferenceContract

if TYPE_CHECKING:
    import torch

    from proofmark.case import Loader
    from proofmark.rules.config import EffectiveConfig


class TestSwin(OnGivenFolders, InferenceContract):
    """Top-1 accuracy on scanned digits (embedded) or ImageNet-1k (standard)."""

    imports = ("transformers.models.swin.modeling_swin",)

    def build_dataloader(self, config: EffectiveConfig, split: str = "validation") -> Loader:
        """Images of shape (batch, channels, image_size, image_size) and their classes, (batch,)."""
        from suites.data.images.loaders import image_loader

        return image_loader(config, split)

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """Image to logits of shape (batch, classes)."""
        from transformers import SwinForImageClassification

        from suites.models import ImageLogits, build_model

        return ImageLogits(build_model(SwinForImageClassification, config, labels=config.classes))

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """Images whose highest logit is their class's, and images."""
        return float((outputs[0].argmax(-1) == targets).sum()), float(len(targets))
