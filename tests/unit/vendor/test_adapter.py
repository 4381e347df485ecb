"""What a vendor does its own way in training stands in the record, however it put it there."""

from __future__ import annotations

from typing import Any

import torch

from proofmark.vendor.adapter import TrainingAdapter, adapted_steps


class Overrides(TrainingAdapter):
    def backward(self, loss: torch.Tensor) -> None:
        loss.sum().backward()

    def adapted(self) -> list[str]:
        return []


class Hides(TrainingAdapter):
    def __init__(self) -> None:
        self.train_step = self.quickly  # type: ignore[method-assign, assignment]

    def quickly(self, *arguments: Any) -> torch.Tensor:
        return torch.zeros(())


def test_every_way_is_seen() -> None:
    assert adapted_steps(TrainingAdapter()) == []
    assert adapted_steps(Overrides()) == ["backward"]
    assert adapted_steps(Hides()) == ["train_step"]
    assert len(adapted_steps(object())) == 5  # type: ignore[arg-type]
