"""BERT: masked language modelling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.data.given import OnGivenFolders
from suites.inference.contract import InferenceContract

if TYPE_CHECKING:
    import torch

    from proofmark.case import Loader
    from proofmark.rules.config import EffectiveConfig


class TestBert(OnGivenFolders, InferenceContract):
    """Accuracy on hidden words of a seeded grammar (embedded) or hidden tokens of text files (standard)."""

    imports = ("transformers.models.bert.modeling_bert",)

    input_names = ("input_ids", "attention_mask")

    output_names = ("highest_logits", "tokens")

    def build_dataloader(self, config: EffectiveConfig, split: str = "validation") -> Loader:
        """Token ids, attention mask and targets (-100 where nothing is hidden), each (batch, max_seq_length)."""
        from suites.data.text.masked import text_loader

        return text_loader(config, split)

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """Ids and mask to each token's highest logit and whose it is; while it is trained, to all logits."""
        from transformers import BertForMaskedLM

        from suites.models import LikeliestTokens, build_model

        return LikeliestTokens(build_model(BertForMaskedLM, config))

    def shortfall(
        self, model: torch.nn.Module, inputs: list[torch.Tensor], outputs: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        """Of the tokens."""
        from suites.models import LikeliestTokens

        assert isinstance(model, LikeliestTokens)
        ids, mask = inputs
        return [model.shortfall(ids, mask, outputs[1])]

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """Hidden tokens that are guessed right, and hidden tokens."""
        hidden = targets != -100
        return float((outputs[1] == targets)[hidden].sum()), float(hidden.sum())
