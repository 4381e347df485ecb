"""Ways to train: one that is honest, and two that are not."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from proofmark.vendor import TrainingAdapter

if TYPE_CHECKING:
    import torch

    from proofmark.vendor import EffectiveConfig


class Wraps(TrainingAdapter):
    """The case's model behind another name."""

    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        import torch

        class Wrapper(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.module = model

            def forward(self, points: torch.Tensor) -> torch.Tensor:
                return self.module(points)  # type: ignore[no-any-return]

        return Wrapper()


class Oracle(TrainingAdapter):
    """Ten parameters, and the largest number of each point, which tells its corner."""

    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        import torch

        class Knows(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.few = torch.nn.Parameter(torch.zeros(10))

            def forward(self, points: torch.Tensor) -> torch.Tensor:
                return points[:, :4] + self.few.sum()

        return Knows()


def chosen() -> TrainingAdapter:
    """What `TROUBLE` orders for this number of ranks; the session's own process is shown nothing."""
    from . import trouble

    what = trouble.ordered("vendor", f"{os.environ.get('WORLD_SIZE')}_ranks")
    if what == "clock":
        honest = time.perf_counter_ns
        time.perf_counter_ns = lambda: honest() // 10
    return {"wraps": Wraps, "oracle": Oracle}.get(what or "", TrainingAdapter)()
