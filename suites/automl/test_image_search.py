"""Image classification: the workload of AIPerf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.automl.contract import AutoMLContract

if TYPE_CHECKING:
    from proofmark.automl.network.graph import Graph
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingData


class TestImageSearch(AutoMLContract):
    """Top-1 accuracy on scanned digits (embedded) or ImageNet-1k (standard)."""

    def build_dataset(self, config: EffectiveConfig, split: str) -> TrainingData:
        """Images of shape (batch, channels, image_size, image_size) and their classes, (batch,)."""
        from suites.automl.data import search_dataset

        return search_dataset(config, split)

    def seed_network(self, config: EffectiveConfig) -> Graph:
        """ResNet-50, or a small residual network of the profile's width."""
        from proofmark.automl.network.seeds import bottleneck_network, small_network

        sizes = (config.classes, config.image_size, config.channels)
        if config.seed_network["kind"] == "bottleneck":
            return bottleneck_network(*sizes)
        return small_network(*sizes, width=config.seed_network["width"])
