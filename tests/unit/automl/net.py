"""A case of two milliseconds for unit tests of training, caching and the worker."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from proofmark.inference.case import InferenceCase
from proofmark.record.parts import Identity


class Points(TensorDataset):
    """Forty points of two kinds; `changed` makes them another dataset."""

    def __init__(self, changed: str = "") -> None:
        targets = torch.arange(40) % 2
        super().__init__(torch.stack([targets * 2.0 - 1, torch.ones(40)], 1), targets)
        self.identity = Identity(name="points", sha256="0" * 60 + changed.rjust(4, "0"), items=40)


class Net(InferenceCase):
    """One layer."""

    data = ""

    def build_dataloader(self, config: Any, split: str = "validation") -> Any:
        return DataLoader(Points(self.data), 8, collate_fn=_collate)

    def create_model(self, config: Any) -> torch.nn.Module:
        return torch.nn.Linear(2, 2)

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        return float((outputs[0].argmax(1) == targets).sum()), float(len(targets))


class Convolves(Net):
    """One convolution and one layer."""

    def create_model(self, config: Any) -> torch.nn.Module:
        layers = torch.nn.Unflatten(1, (2, 1, 1)), torch.nn.Conv2d(2, 2, 2, padding=1), torch.nn.Flatten()
        return torch.nn.Sequential(*layers, torch.nn.Linear(8, 2))


class Breaks(Net):
    """Has no loss."""

    def loss(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no loss today")


def _collate(items: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[list[torch.Tensor], torch.Tensor]:
    points, targets = zip(*items, strict=True)
    return [torch.stack(points)], torch.stack(targets)
