"""BERT: masked language modelling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.data.given import OnGivenFolders
from suites.training.contract import TrainingContract

if TYPE_CHECKING:
    import torch

    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingData


class TestBert(OnGivenFolders, TrainingContract):
    """Accuracy on hidden words of a seeded grammar (embedded) or hidden tokens of text files (standard)."""

    imports = ("transformers.models.bert.modeling_bert",)

    def build_dataset(self, config: EffectiveConfig, split: str) -> TrainingData:
        """Token ids, attention mask and targets (-100 where nothing is hidden), each (batch, max_seq_length)."""
        from suites.data.text.masked import text_dataset

        return text_dataset(config, split)

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """Ids and mask to each token's highest logit and whose it is; while it is trained, to all logits."""
        from transformers import BertForMaskedLM

        from suites.models import LikeliestTokens, build_model

        return LikeliestTokens(build_model(BertForMaskedLM, config))

    def create_optimizer(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        """LAMB where the profile says so, AdamW otherwise."""
        if config.get("optimizer") != "lamb":
            return super().create_optimizer(model, config)
        from suites.lamb import Lamb, decayed

        return Lamb(decayed(model, config.weight_decay), lr=config.learning_rate)

    def tokens(self, inputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """Those that the mask lets the model see."""
        return inputs[1].sum(1)

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """Hidden tokens that are guessed right, and hidden tokens."""
        hidden = targets != -100
        return float((outputs[1] == targets)[hidden].sum()), float(hidden.sum())
