"""What hosts need is installed there: real virtual environments, real pip, over ssh."""

from __future__ import annotations

import sys
import sysconfig
import zipfile
from pathlib import Path

from tests.cluster.conftest import Campus
from tests.cluster.site import recorded
from tests.cluster.test_ssh import one_line_table

PLAIN_PYTHON = str(Path(sys.base_prefix) / "bin" / "python3")
"""The interpreter that this environment was made with: it has not what the suite requires."""


def wheel(folder: Path) -> Path:
    """A package that lends whoever installs it this environment's packages: torch need not be installed anew."""
    path, info = folder / "lent-1.0-py3-none-any.whl", "lent-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("lent.pth", sysconfig.get_path("purelib"))
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: lent\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_requirements_are_installed_once_on_every_host(new_campus: Campus, tmp_path: Path) -> None:
    campus = new_campus
    required = campus.house.root / "requirements.txt"
    required.write_text(f"lent @ {wheel(tmp_path).as_uri()}\n")
    settings = {"python": PLAIN_PYTHON, "requirements": ["requirements.txt"]}
    ran = campus.run(**settings)
    assert ran.code == 0, ran.output
    assert len(recorded(ran).runs[0].launched) == 2
    made = {path: path.stat().st_mtime_ns for host in campus.hosts.hosts for path in host.work.glob("*/*/finished")}
    assert len(made) == 2
    required.with_name("none.txt").write_text("")
    ran = campus.run("--preflight-only", python=PLAIN_PYTHON, requirements=["none.txt"])
    one_line_table(ran, "of 2 hosts 2 are not ready", "not installed: ", " torch, transformers, ")
    ran = campus.run("--preflight-only", **settings)
    assert ran.code == 0 and "installing" not in ran.output, ran.output
    assert {path: path.stat().st_mtime_ns for path in made} == made, "they are there already"
    assert campus.is_empty()


def test_what_cannot_be_installed_is_told(campus: Campus) -> None:
    settings = {"python": PLAIN_PYTHON, "requirements": ["requirements.txt"]}
    (campus.house.root / "requirements.txt").write_text("lost @ file:///nowhere/lost-1.0-py3-none-any.whl\n")
    expected = "its requirements cannot be installed: ERROR:", "No such file or directory: '/nowhere/lost-1.0"
    one_line_table(campus.run("--preflight-only", **settings), *expected)
    assert campus.is_empty()
