"""What a case of primes is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from proofmark.case import Case
from proofmark.rules.case_file import Parameters

if TYPE_CHECKING:
    import torch

    from proofmark.rules.config import EffectiveConfig


class PrimesParameters(Parameters):
    """Those of a case of primes."""

    primes: int = Field(ge=0, description="how many there are below the bound")


class PrimesCase(Case):
    """A bound."""

    parameters_type = PrimesParameters
    packages = ("PyYAML",)

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """There is none."""
        raise NotImplementedError

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """Nothing to score."""
        raise NotImplementedError
