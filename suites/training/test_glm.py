"""GLM: filling a blank with the candidate that the model finds likeliest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.data.given import OnGivenFolders
from suites.training.contract import TrainingContract

if TYPE_CHECKING:
    import torch

    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingData


class TestGlm(OnGivenFolders, TrainingContract):
    """Accuracy on blanks in a seeded grammar's clauses (embedded) or on SuperGLUE's ReCoRD (standard)."""

    weights_settings = None

    def build_dataset(self, config: EffectiveConfig, split: str) -> TrainingData:
        """Contexts with a blank, each with its candidates in one sequence, and which candidates are right."""
        from suites.data.text.cloze import cloze_dataset

        return cloze_dataset(config, split)

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """Sequences to each candidate's log-likelihood, (batch, candidates)."""
        from suites.glm_model import build_glm
        from suites.models import CandidateScores

        return CandidateScores(build_glm(config))

    def loss(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """Cross entropy over the candidates; any right one will do."""
        import torch

        right = outputs[0].masked_fill(targets != 1, torch.finfo(outputs[0].dtype).min)
        return (outputs[0].logsumexp(-1) - right.logsumexp(-1)).mean()

    def loss_weight(self, targets: torch.Tensor) -> float:
        """Questions."""
        return float(len(targets))

    def tokens(self, inputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """Those of the context and of all candidates."""
        return (inputs[1] >= 0).sum(1)

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """Questions whose likeliest candidate is right, and questions."""
        best = outputs[0].argmax(-1, keepdim=True)
        return float((targets.gather(1, best) == 1).sum()), float(len(targets))
