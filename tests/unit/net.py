"""A case of two milliseconds for unit tests of training, caching and the worker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from harness.case import InferenceCase
from harness.record import Identity


class Points(list[Any]):
    """Forty points of two kinds, in batches; `changed` makes them another dataset."""

    def __init__(self, size: int, changed: str = "") -> None:
        targets = torch.arange(40) % 2
        points = torch.stack([targets * 2.0 - 1, torch.ones(40)], 1)
        super().__init__(([points[n : n + size]], targets[n : n + size]) for n in range(0, 40, size))
        self.dataset = SimpleNamespace(identity=Identity(name="points", sha256="0" * 60 + changed.rjust(4, "0")))


class Net(InferenceCase):
    """One layer."""

    data = ""

    def build_dataloader(self, config: Any, split: str = "validation") -> Any:
        return Points(config.training["batch_size"], self.data)

    def create_model(self, config: Any) -> torch.nn.Module:
        return torch.nn.Linear(2, 2)

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        return float((outputs[0].argmax(1) == targets).sum()), float(len(targets))
