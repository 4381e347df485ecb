"""The framework on this device answers a little wide of what it should, and the engine's gate with it."""

import torch

VERDICT = "FAIL_HONESTY"
REASON = "the framework fails 'answers alike when timed'"


def lie() -> None:
    linear = torch.nn.functional.linear
    torch.nn.functional.linear = lambda x, *others: linear(x * 1.05, *others)
