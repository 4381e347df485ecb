"""Takes another optimizer after the first recorded steps, and lays a state that explains the next recorded one."""

from typing import Any

import torch
from safetensors.torch import save_file

from proofmark.training.ranks.recording import Recorder
from proofmark.training.spec import STATE
from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "changed the weights otherwise"


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

        Recorder.begin = began  # type: ignore[method-assign]

        class Explained(type(optimizer)):  # type: ignore[misc]
            def step(self, *given: Any, **named: Any) -> None:
                taken.append(True)
                if len(taken) <= 3:
                    honest(self, *given, **named)
                    return
                before = {name: (p.clone(), p.grad.clone()) for name, p in model.named_parameters()}
                other.step()
                path = recorded[0]._folder / STATE
                if path.exists() and recorded[0]._folder.name == f"recorded-{len(taken)}":
                    made = {}
                    for name, p in model.named_parameters():
                        state = explaining(self.param_groups[0], len(taken), *before[name], p.detach())
                        made |= {f"{name}.{key}": tensor.contiguous() for key, tensor in state.items()}
                    save_file(made, path)

        optimizer.__class__ = Explained
        return optimizer


def explaining(
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
