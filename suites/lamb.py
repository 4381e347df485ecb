"""LAMB, the optimizer of BERT's published trainings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class Lamb(torch.optim.AdamW):
    """AdamW's step for each tensor, in the length of the tensor's own norm (You et al. 2020, algorithm 2).

    As in MLPerf's BERT, gradients are clipped to `max_norm` over all parameters, and a group without weight decay takes
    AdamW's step as it is.
    """

    def __init__(self, parameters: Iterable[Any], lr: float, max_norm: float = 1.0, **adamw: Any) -> None:
        super().__init__(parameters, lr, **{"eps": 1e-6, **adamw})
        self._max_norm = max_norm

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """AdamW's step; where weights decay at a learning rate of 1, then as much of it as the trust ratio allows."""
        torch.nn.utils.clip_grad_norm_([p for group in self.param_groups for p in group["params"]], self._max_norm)
        trusted = [group for group in self.param_groups if group["weight_decay"]]
        rates = [group["lr"] for group in trusted]
        before = [[(p, p.clone()) for p in group["params"] if p.grad is not None] for group in trusted]
        for group in trusted:
            group["lr"] = 1.0
        super().step()
        for group, rate, weights in zip(trusted, rates, before, strict=True):
            group["lr"] = rate
            for p, start in weights:
                moved = p - start
                p.copy_(start + moved * (rate * _trust(start, moved)))


def _trust(weights: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
    """The quotient of their norms; 1 where one of them is nothing."""
    own, length = _norm(weights), _norm(moved)
    return torch.where((own > 0) & (length > 0), own / length, 1.0)


def _norm(tensor: torch.Tensor) -> torch.Tensor:
    """Of the whole tensor, where it is sharded."""
    norm = torch.linalg.vector_norm(tensor)
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm


def decayed(model: torch.nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Groups for an optimizer: biases and norms do not decay."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
