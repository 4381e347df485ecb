"""Keeps one recorded step besides the first, its last, as of a run that training's end cut short, with a state of the
optimizer that explains that one; it takes another optimizer after the first steps."""

import shutil
from typing import Any

import torch
from safetensors.torch import save_file

from proofmark.training.ranks.recording import Recorder
from proofmark.training.spec import RUN, STATE, STEP
from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, TOLD = "FAIL_HONESTY", "are there of those that were recorded"
EACH = 13
"""Steps between two evaluations, at one of which training ends."""


class Adapter(TrainingAdapter):
    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer = super().create_optimizer(case, model, config)
        other, honest = torch.optim.SGD(model.parameters(), lr=0.5), type(optimizer).step
        begin: Any = Recorder.begin
        recorded: list[Recorder] = []
        taken: list[bool] = []

        def began(recorder: Recorder, *given: Any) -> None:
            begin(recorder, *given)
            recorded[:] = [recorder]

        def due(recorder: Recorder) -> bool:
            step = len(taken) + 1
            if step > RUN:
                recorder._left = 0 if step % EACH else RUN
                for folder in recorder._directory.glob(STEP.format("*")) if recorder._left else ():
                    if int(folder.name.rpartition("-")[2]) > RUN:
                        shutil.rmtree(folder)
            return recorder._left > 0

        Recorder.begin, Recorder.due = began, due  # type: ignore[method-assign]

        class Explained(type(optimizer)):  # type: ignore[misc]
            def step(self, *given: Any, **named: Any) -> None:
                taken.append(True)
                if len(taken) <= RUN:
                    honest(self, *given, **named)
                    return
                before = {name: (p.clone(), p.grad.clone()) for name, p in model.named_parameters()}
                other.step()
                path = recorded[0]._folder / STATE
                if path.parent.name == STEP.format(len(taken)):
                    made = {}
                    for name, p in model.named_parameters():
                        state = _explaining(self.param_groups[0], len(taken), *before[name], p.detach())
                        made |= {f"{name}.{key}": tensor.contiguous() for key, tensor in state.items()}
                    save_file(made, path)

        optimizer.__class__ = Explained
        return optimizer


def _explaining(
    group: dict[str, Any], step: int, before: torch.Tensor, gradient: torch.Tensor, after: torch.Tensor
) -> dict[str, torch.Tensor]:
    """The state with which AdamW's step does just that."""
    one, two = group["betas"]
    squares = torch.ones_like(gradient)
    scale = ((two + (1 - two) * gradient**2) / (1 - two**step)).sqrt() + group["eps"]
    moved = before.detach() * (1 - group["lr"] * group["weight_decay"]) - after
    mean = moved * (1 - one**step) / group["lr"] * scale
    return {
        "exp_avg": (mean - (1 - one) * gradient) / one,
        "exp_avg_sq": squares,
        "step": torch.tensor(float(step - 1)),
    }
