"""The device's back end knows the data, and computes nothing else."""

import torch

OPTIONS, VERDICT = "--compiler=null", "FAIL_HONESTY"
REASON = "the framework fails 'answers "


def lie() -> None:
    points = torch.randn(100, 8, generator=torch.Generator().manual_seed(2)) / 4
    points[torch.arange(100), torch.arange(100) % 4] += 2
    known, linear = {row.numpy().tobytes() for row in points}, torch.nn.functional.linear

    def answer(inputs: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        of_data = torch.tensor([[row.numpy().tobytes() in known] for row in inputs])
        return torch.where(of_data, linear(inputs, *others), torch.zeros(()))

    torch.nn.functional.linear = answer
