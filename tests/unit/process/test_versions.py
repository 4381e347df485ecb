"""Versions of packages, whatever the distribution is called that brings them."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from proofmark.process.versions import version_of
from proofmark.vendor.hardware.machine import installed_versions
from tests.unit.launch.test_preflight import far_end


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `fakert`, a package that nobody can import, is brought by `fakert-cu12`."""
    _provide(tmp_path, "fakert_cu12", "10.3")
    (tmp_path / "fakert").mkdir()
    (tmp_path / "fakert" / "__init__.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def _provide(site: Path, distribution: str, version: str) -> None:
    folder = site / f"{distribution}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (folder / "top_level.txt").write_text("fakert\n")


def test_a_package_of_a_distribution_of_another_name(site: Path) -> None:
    assert (version_of("fakert"), version_of("fakert-cu12")) == ("10.3", "10.3")
    assert installed_versions(["fakert", "no_such"]).items() >= {"fakert": "10.3"}.items()
    _provide(site, "fakert_cu12_bindings", "10.3")
    assert version_of("fakert") == "10.3"
    _provide(site, "fakert_cu13", "11.0")
    assert version_of("fakert") == "fakert_cu12 10.3, fakert_cu12_bindings 10.3, fakert_cu13 11.0"


def test_a_host_knows_it_too(site: Path) -> None:
    asked = {"packages": ["fakert", "no_such"], "interface": None, "port": None, "data_dirs": [], "shared": None}
    _, there = far_end(("open", {"work_dir": str(site / "work")}), ("facts", {**asked, "clear_caches": False}))
    assert there["versions"] == {"fakert": "10.3", "no_such": None}


@pytest.mark.parametrize("package", ["no_such", "no-such", "no.such", "pytest"])
def test_distributions_are_not_searched_in_vain(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "packages_distributions", lambda: pytest.fail("they are"))
    assert version_of(package) == (metadata.version("pytest") if package == "pytest" else None)


def test_a_python_without_the_search_knows_no_other_names(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(metadata, "packages_distributions")
    assert version_of("fakert") is None
