"""An extension of torch is its vendor's code: it is loaded where the engine is, and not in the referee."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.conftest import House

EXTENSION = """
import os, sys

def autoload():
    print("EXTENSION in " + sys.modules["__main__"].__spec__.name, flush=True)
"""


def test_an_extension_of_torch_is_loaded_in_the_engines_process_alone(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it lies here no wall lets it be read: what is looked at is which process has it."""
    installed = tmp_path / "installed"
    (installed / "acme_extension-1.0.dist-info").mkdir(parents=True)
    (installed / "acme_extension.py").write_text(EXTENSION)
    (installed / "acme_extension-1.0.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-extension\nVersion: 1.0\n"
    )
    entry = "[torch.backends]\nacme = acme_extension:autoload\n"
    (installed / "acme_extension-1.0.dist-info/entry_points.txt").write_text(entry)
    monkeypatch.setenv("PYTHONPATH", str(installed))
    house.started_as_users_do = True
    ran = house.run("--isolation", "process")
    assert ran.code == 0, ran.output
    log = (ran.case_dir() / "worker.log").read_text()
    seen = [line.removeprefix("EXTENSION in ") for line in log.splitlines() if line.startswith("EXTENSION in ")]
    assert seen == ["proofmark.inference.engine.main"], log
    assert "EXTENSION" not in ran.output and "TORCH_DEVICE_BACKEND_AUTOLOAD" not in os.environ
