"""What a case's class brings into each of its processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SLOW = ("pytest", "sklearn.datasets")
"""Modules whose import takes a process nearly half a second or more, and that only the session has a use for."""


@pytest.mark.parametrize("suite", ["automl", "inference", "training"])
def test_a_case_is_imported_without_what_only_the_session_needs(suite: str) -> None:
    modules = [f"suites.{suite}.{path.stem}" for path in sorted((ROOT / "suites" / suite).glob("test_*.py"))]
    code = f"import importlib, sys\nfor name in {modules}: importlib.import_module(name)\n"
    code += f"print([name for name in {SLOW} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert modules and output.strip() == "[]"
