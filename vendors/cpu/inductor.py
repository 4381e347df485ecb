"""torch.compile with its default back end."""

from __future__ import annotations

from typing import cast

import torch

from vendors.cpu import eager


class InferModel(eager.InferModel):
    """Compiles at the first call, in the untimed warm-up; the batch dimension may vary."""

    def compiled(self, model: torch.nn.Module) -> torch.nn.Module:
        return cast(torch.nn.Module, torch.compile(model))
