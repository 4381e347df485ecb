"""What hosts need is installed there, or it is told what of theirs is in the way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from proofmark.launch.hosts import install


def test_a_python_without_venv_is_told_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Debian's says so in the middle of many lines, of which the last names a file that is gone by then."""
    monkeypatch.setattr(install, "_end_with_parent", lambda: None)
    monkeypatch.setattr(install, "find_spec", {}.get)
    monkeypatch.setattr(sys, "argv", ["install", str(tmp_path / "environments"), str(tmp_path / "constraints.txt")])
    assert install.main() == 1
    assert capsys.readouterr() == ("", f"ERROR: {sys.executable} {install.NO_PIP}\n")
    assert not any(tmp_path.glob("environments/*/finished"))
