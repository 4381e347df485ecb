"""An extension of torch is its vendor's code: it is loaded where the engine is, and not in the referee."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proofmark.vendor.torch_extensions import AUTOLOAD
from tests.e2e.conftest import House

ROOT = Path(__file__).parents[2]

EXTENSION = """
import os, sys

def autoload():
    print("EXTENSION in " + getattr(sys.modules["__main__"].__spec__, "name", "a script"), flush=True)
"""


AGENT = """
import os
from proofmark.training.node.agent_forks import fork_ranks

before = dict(os.environ)
fork_ranks({})
import torch.distributed.run
assert os.environ == before, "a monitor may need its devices"
"""


@pytest.fixture
def extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An extension is."""
    installed = tmp_path / "installed"
    (installed / "acme_extension-1.0.dist-info").mkdir(parents=True)
    (installed / "acme_extension.py").write_text(EXTENSION)
    (installed / "acme_extension-1.0.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-extension\nVersion: 1.0\n"
    )
    entry = "[torch.backends]\nacme = acme_extension:autoload\n"
    (installed / "acme_extension-1.0.dist-info/entry_points.txt").write_text(entry)
    monkeypatch.setenv("PYTHONPATH", str(installed))
    monkeypatch.delenv(AUTOLOAD, raising=False)  # a test before this one may have run in here what holds them back


@pytest.mark.usefixtures("extension")
def test_who_runs_ranks_loads_none() -> None:
    """It writes their logs, outside of any wall."""
    ran = subprocess.run([sys.executable, "-c", AGENT], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


def test_an_extension_of_torch_is_loaded_in_the_engines_process_alone(house: House, extension: None) -> None:
    """Where it lies here no wall lets it be read: what is looked at is which process has it."""
    house.started_as_users_do = True
    ran = house.run("--isolation", "process")
    assert ran.code == 0, ran.output
    log = (ran.case_dir() / "worker.log").read_text()
    seen = [line.removeprefix("EXTENSION in ") for line in log.splitlines() if line.startswith("EXTENSION in ")]
    assert set(seen) == {"proofmark.inference.engine.inside.main"}, log  # however many engines were made
    assert "EXTENSION" not in ran.output and AUTOLOAD not in os.environ
