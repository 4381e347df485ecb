"""FLOPs are counted, of what the processor computes at once too, and nothing is compiled for that."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional

from proofmark.measuring.precision import count_flops

COUNTED = """
import sys, torch
from proofmark.measuring.precision import count_flops
print(count_flops(torch.nn.Conv2d(3, 8, 3), [torch.ones(2, 3, 8, 8)]), "torch._dynamo" in sys.modules)
"""


def test_counting_flops_does_not_load_torchs_compiler() -> None:
    ran = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=False)
    assert ran.stdout.split() == [str(2.0 * 8 * 36 * 27), "False"], ran.stderr


class Attention(nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(query, key, key, enable_gqa=True)


TOKENS, WIDTH, INNER = 8, 16, 32


@pytest.mark.parametrize(
    "model, shapes, multiply_adds",
    [
        (Attention(), [(4, TOKENS, WIDTH), (2, TOKENS, WIDTH)], 2 * 4 * TOKENS**2 * WIDTH),
        (
            nn.TransformerEncoderLayer(WIDTH, 2, INNER, batch_first=True),
            [(TOKENS, WIDTH)],
            4 * TOKENS * WIDTH**2 + 2 * TOKENS**2 * WIDTH + 2 * TOKENS * WIDTH * INNER,
        ),
        (
            nn.LSTM(WIDTH, INNER, num_layers=2, bidirectional=True, batch_first=True),
            [(TOKENS, WIDTH)],
            2 * TOKENS * 4 * INNER * ((WIDTH + INNER) + (2 * INNER + INNER)),
        ),
    ],
    ids=["attention", "encoder layer", "LSTM"],
)
def test_what_the_processor_computes_at_once_is_counted(
    model: nn.Module, shapes: list[tuple[int, ...]], multiply_adds: int
) -> None:
    assert count_flops(model.eval(), [torch.ones(2, *shape) for shape in shapes]) == 2.0 * multiply_adds
    assert torch.backends.mha.get_fastpath_enabled()
