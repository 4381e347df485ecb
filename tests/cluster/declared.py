"""What a vendor's environment.yaml declares and what a CI has in its environment, and how far each has come."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.record.envelope import CaseRecord
from tests.e2e.conftest import House, Ran

DECLARED = {"FAKE_DECLARED": "by the vendor"}
TOKENS = {name: f"secret-{name}" for name in ("CI_JOB_TOKEN", "GITHUB_TOKEN", "HF_TOKEN", "ACME_DEPLOY_KEY")}

SHOWS = f"""

import os
import sys
print("DECLARED", os.environ.get("FAKE_DECLARED"), sorted({sorted(TOKENS)} & os.environ.keys()), file=sys.stderr)
"""
"""Printed where a vendor's code is imported."""


def declare(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the house's vendors declare a variable, and sessions begin with tokens in their environment."""
    for vendor in ("cpu", "fake"):
        folder = house.root / "vendors" / vendor
        folder.joinpath("environment.yaml").write_text("variables: {FAKE_DECLARED: by the vendor}\n")
        with folder.joinpath("__init__.py").open("a") as code:
            code.write(SHOWS)
    for name, value in TOKENS.items():
        monkeypatch.setenv(name, value)


def reached(ran: Ran, record: CaseRecord, *logs: Path) -> None:
    """What is declared is in the processes that left these logs, and in the record; a token is nowhere."""
    for log in logs:
        assert "DECLARED by the vendor []\n" in log.read_text(), log
    assert record.provenance is not None and record.provenance.environment == DECLARED
    for path in ran.run_dir.rglob("*"):
        if path.is_file():
            assert b"secret-" not in path.read_bytes(), path
