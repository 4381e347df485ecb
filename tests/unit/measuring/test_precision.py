"""FLOPs are counted, and nothing is compiled for that."""

from __future__ import annotations

import subprocess
import sys

COUNTED = """
import sys, torch
from proofmark.measuring.precision import count_flops
print(count_flops(torch.nn.Conv2d(3, 8, 3), [torch.ones(2, 3, 8, 8)]), "torch._dynamo" in sys.modules)
"""


def test_counting_flops_does_not_load_torchs_compiler() -> None:
    ran = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=False)
    assert ran.stdout.split() == [str(2.0 * 8 * 36 * 27), "False"], ran.stderr
