"""What an engine's process in its vendor's image is made of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

IMPORTS = """
import sys
sys.path.insert(0, sys.argv[1])
import proofmark.inference.engine.inside.in_image
import proofmark.vendor
print(*sorted({name.partition(".")[0] for name in sys.modules} - {*sys.stdlib_module_names, "__main__"}))
"""


def test_it_needs_no_package_of_ours() -> None:
    """By an interpreter that has none: nothing but torch, which is imported with the model, and the vendor's own."""
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", IMPORTS, str(ROOT)], capture_output=True, text=True)
    assert ran.stdout.split() == ["proofmark"], ran.stderr
