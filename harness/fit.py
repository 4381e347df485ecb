"""Training of the embedded profile's weights: on the CPU, in float32, from one seed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    import torch

    from harness.case import InferenceCase
    from harness.config import EffectiveConfig

Progress = Callable[..., None]


class Recipe(BaseModel):
    """The parameter `training` of an embedded profile."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    weight_decay: float = Field(0.01, ge=0)
    schedule: Literal["one_cycle", "constant"] = "one_cycle"
    channels_last: bool = False


def fit(
    case: InferenceCase, model: torch.nn.Module, config: EffectiveConfig, recipe: Recipe, progress: Progress
) -> None:
    """Train `model` in place by AdamW on the case's training split.

    `progress` is called with step, steps, samples_per_second and loss, at most twice a second.
    """
    import torch

    if recipe.channels_last:
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    loader = case.build_dataloader(config, "train")
    steps = recipe.epochs * len(loader)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    scheduler = None
    if recipe.schedule == "one_cycle":
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.learning_rate, total_steps=steps)
    model.train()
    step = samples = 0
    started = reported = time.perf_counter()
    for _ in range(recipe.epochs):
        for inputs, targets in loader:
            if recipe.channels_last:
                inputs = [i.to(memory_format=torch.channels_last) if i.dim() == 4 else i for i in inputs]
            optimizer.zero_grad(set_to_none=True)
            output = model(*inputs)
            loss = case.loss([output] if isinstance(output, torch.Tensor) else list(output), targets)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if scheduler:
                scheduler.step()
            step, samples = step + 1, samples + len(inputs[0])
            now = time.perf_counter()
            if now - reported > 0.5 or step == steps:
                reported = now
                progress(step=step, steps=steps, samples_per_second=samples / (now - started), loss=loss.item())
    model.eval()
    if recipe.channels_last:
        model.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
