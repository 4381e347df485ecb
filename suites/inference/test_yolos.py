"""YOLOS: object detection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.data.given import OnGivenFolders
from suites.inference.contract import InferenceContract

if TYPE_CHECKING:
    import torch

    from proofmark.case import Loader
    from proofmark.metric import Metric
    from proofmark.rules.config import EffectiveConfig


class TestYolos(OnGivenFolders, InferenceContract):
    """COCO's mean average precision on generated scenes (embedded) or COCO (standard)."""

    packages = (*InferenceContract.packages, "faster-coco-eval")

    imports = ("transformers.models.yolos.modeling_yolos",)

    output_names = ("logits", "pred_boxes")

    def build_dataloader(self, config: EffectiveConfig, split: str = "validation") -> Loader:
        """Images of shape (batch, channels, *image_size) and their objects, (batch, objects, 6)."""
        from suites.data.images.loaders import detection_loader

        return detection_loader(config, split)

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """Image to logits, (batch, queries, classes + 1), and boxes, (batch, queries, 4)."""
        from suites.models import yolos

        return yolos(config)

    def metric(self, config: EffectiveConfig) -> Metric:
        """COCO's `map`, `map_50` and `map_75`."""
        from suites.detection import MeanAveragePrecision

        return MeanAveragePrecision()

    def loss(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """DETR's: each object is matched with one query."""
        from suites.detection import matching_loss

        return matching_loss(outputs, targets)

    def loss_weight(self, targets: torch.Tensor) -> float:
        """Objects, over which the loss is the mean; crowds are none, as there."""
        return float(((targets[..., 0] >= 0) & (targets[..., 5] == 0)).sum())
