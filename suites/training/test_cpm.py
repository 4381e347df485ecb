"""CPM: a causal language model of Chinese."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.data.given import OnGivenFolders
from suites.training.contract import TrainingContract

if TYPE_CHECKING:
    import torch

    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingData


class TestCpm(OnGivenFolders, TrainingContract):
    """Embedding average on sentences of a seeded grammar (embedded) or text files (standard)."""

    imports = ("transformers.models.gpt2.modeling_gpt2",)

    def build_dataset(self, config: EffectiveConfig, split: str) -> TrainingData:
        """Token ids and the token after each (-100 for none), both (batch, max_seq_length)."""
        from suites.data.text.causal import causal_dataset

        return causal_dataset(config, split)

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """Ids to logits of shape (batch, max_seq_length, vocab_size), and the embeddings, (vocab_size, features)."""
        from transformers import GPT2LMHeadModel

        from suites.models import LogitsAndEmbeddings, build_model

        return LogitsAndEmbeddings(build_model(GPT2LMHeadModel, config))

    def tokens(self, inputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """Those that another one follows."""
        return (targets != -100).sum(1)

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """The cosines between the mean embeddings of guessed and of true tokens, and sequences.

        A guess that wrongly repeats the token before it counts as none: `cpm.yaml` says why.
        """
        import torch

        logits, embeddings = outputs
        guesses, known = logits.argmax(-1), targets != -100
        repeats = torch.zeros_like(known)
        repeats[:, 1:] = (guesses[:, 1:] == targets[:, :-1]) & (guesses[:, 1:] != targets[:, 1:])
        guessed = (embeddings[guesses] * (known & ~repeats).unsqueeze(-1)).sum(1)
        true = (embeddings[targets.clamp(min=0)] * known.unsqueeze(-1)).sum(1)
        return float(torch.cosine_similarity(guessed, true).sum()), float(len(targets))
