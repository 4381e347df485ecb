"""LAMB against its formula, in float64."""

from __future__ import annotations

import math
from copy import deepcopy
from itertools import chain

import pytest
import torch

from suites.lamb import Lamb, decayed
from tests.suites.test_training_cases import CLASSES, training_config

RATE, DECAY, BETAS, EPS = 0.1, 0.01, (0.9, 0.999), 1e-6
Numbers = list[float]


def length(values: Numbers) -> float:
    return math.sqrt(sum(value * value for value in values))


def by_the_formula(weights: list[Numbers], steps: list[list[Numbers]], decay: list[float]) -> list[Numbers]:
    """Algorithm 2 of You et al. 2020 number by number, with gradients clipped to a norm of 1 over all tensors."""
    weights = [list(tensor) for tensor in weights]
    first, second = ([[0.0] * len(tensor) for tensor in weights] for _ in range(2))
    for t, gradients in enumerate(steps, 1):
        norm = length(list(chain(*gradients)))
        for tensor, gradient, m, v, wd in zip(weights, gradients, first, second, decay, strict=True):
            update = []
            for i, g in enumerate(gradient):
                g /= max(1.0, norm + 1e-6)  # as torch clips
                m[i] = BETAS[0] * m[i] + (1 - BETAS[0]) * g
                v[i] = BETAS[1] * v[i] + (1 - BETAS[1]) * g * g
                ratio = m[i] / (1 - BETAS[0] ** t) / (math.sqrt(v[i] / (1 - BETAS[1] ** t)) + EPS)
                update.append(ratio + wd * tensor[i])
            own, moved = length(tensor), length(update)
            trust = own / moved if wd and own and moved else 1.0
            tensor[:] = [value - RATE * trust * u for value, u in zip(tensor, update, strict=True)]
    return weights


@pytest.mark.parametrize("size", [0.1, 5.0])
def test_steps_are_those_of_the_formula(size: float) -> None:
    """A matrix, one of nothing but zeros, and a bias, which does not decay; gradients that are clipped and not."""
    torch.manual_seed(0)
    shapes = [(3, 4), (2, 2), (4,)]
    weights = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    weights[1].zero_()
    steps = [[size * torch.randn(shape, dtype=torch.float64) for shape in shapes] for _ in range(4)]
    decay = [DECAY, DECAY, 0.0]

    def plain(tensors: list[torch.Tensor]) -> list[Numbers]:
        return [tensor.flatten().tolist() for tensor in tensors]

    wanted = by_the_formula(plain(weights), [plain(gradients) for gradients in steps], decay)
    trained = [torch.nn.Parameter(tensor.clone()) for tensor in weights]
    groups = [{"params": [p], "weight_decay": wd} for p, wd in zip(trained, decay, strict=True)]
    optimizer = Lamb(groups, lr=RATE, betas=BETAS, eps=EPS)
    for gradients in steps:
        for parameter, gradient in zip(trained, gradients, strict=True):
            parameter.grad = gradient.clone()
        optimizer.step()
    for parameter, expected in zip(trained, wanted, strict=True):
        assert parameter.flatten().tolist() == pytest.approx(expected, rel=1e-11, abs=1e-13)
    assert [group["lr"] for group in optimizer.param_groups] == [RATE] * 3


def test_what_has_no_gradient_stays() -> None:
    one, other = (torch.nn.Parameter(torch.ones(2, 2)) for _ in range(2))
    optimizer = Lamb([one, other], lr=RATE, weight_decay=DECAY)
    one.grad = torch.ones(2, 2)
    optimizer.step()
    assert not torch.equal(one, torch.ones(2, 2)) and torch.equal(other, torch.ones(2, 2))


def test_an_earlier_state_is_gone_on_from() -> None:
    def step(optimizer: torch.optim.Optimizer, parameter: torch.nn.Parameter, gradient: float) -> None:
        parameter.grad = torch.full((2, 2), gradient)
        optimizer.step()

    torch.manual_seed(0)
    one = torch.nn.Parameter(torch.randn(2, 2))
    optimizer = Lamb([one], lr=RATE)
    step(optimizer, one, 0.5)
    other = torch.nn.Parameter(one.detach().clone())
    again = Lamb([other], lr=RATE)
    again.load_state_dict(deepcopy(optimizer.state_dict()))
    step(optimizer, one, -0.25)
    step(again, other, -0.25)
    assert torch.equal(one, other)


def test_biases_and_norms_do_not_decay() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.LayerNorm(3))
    matrices, others = decayed(model, DECAY)
    assert [p.shape for p in matrices["params"]] == [(3, 2)] and len(others["params"]) == 3
    assert (matrices["weight_decay"], others["weight_decay"]) == (DECAY, 0.0)


def test_bert_takes_it_where_the_profile_says_so() -> None:
    case, model = CLASSES["bert"](), torch.nn.Linear(2, 2)
    optimizer = case.create_optimizer(model, training_config("bert", "standard"))
    assert isinstance(optimizer, Lamb) and optimizer.defaults["betas"] == BETAS
    assert type(case.create_optimizer(model, training_config("bert"))) is torch.optim.AdamW
