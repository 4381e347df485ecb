"""A vendor from outside: a package of its own, installed from its own directory, under the same contract."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import House, one_line_answer

PACKAGE = Path(__file__).with_name("acme_package")


@pytest.fixture(scope="module")
def site_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package, and nothing else, is installed."""
    folder = tmp_path_factory.mktemp("acme")
    source, site = folder / "source", folder / "site"
    shutil.copytree(PACKAGE, source)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--target", str(site), str(source)], check=True, timeout=120)
    return site


@pytest.fixture
def installed(site_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package in a site directory of its own, for this test's sessions only."""
    site = shutil.copytree(site_directory, tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
    return site / "acme"


def test_it_passes_the_contract(installed: Path, house: House) -> None:
    ran = house.run(vendor="acme")
    assert ran.code == 0, ran.output
    record = ran.record()
    assert record.verdict is not None and record.verdict.kind == "PASS"
    assert (record.vendor, record.compiler, record.chip.name) == ("acme", "anvil", "Acme Anvil 2000")
    assert record.chip.peak is not None and record.chip.peak.flops_per_second == 1e15
    assert record.versions["acme-proofmark"] == "1.0"
    made = record.provenance
    assert made is not None and made.vendor_version.value == "acme-proofmark 1.0" and made.vendor_sha256.value
    assert (made.commit.value is None) == bool(made.commit.reason) and record.host.kernel.value
    assert record.host.driver.reason == "the vendor's adapter does not tell"
    (override,) = [o for o in record.overrides if o.key == "batch_size"]
    assert override.new == 10 and override.origin.endswith("acme/configs/inference/tiny.yaml")


def test_overrides_of_a_case_that_is_not_here_are_told(installed: Path, house: House) -> None:
    (installed / "configs/inference/tinny.yaml").write_text("batch_size: 2\n")
    ran = house.run(vendor="acme")
    assert ran.code == 0, ran.output
    (line,) = [line for line in ran.output.splitlines() if line.startswith("WARNING")]
    assert "tinny.yaml: is not named after a case" in line and "did you mean 'inference/tiny.yaml'?" in line


def test_its_monitor_is_read_and_analysed(installed: Path, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = house.run("--monitor-interval", "0.05", vendor="acme")
    monitoring = ran.record().monitoring
    assert monitoring is not None and not monitoring.failures
    assert {series.name for series in monitoring.series} >= {"host CPU", "power", "utilisation", "memory"}
    monkeypatch.syspath_prepend(str(installed.parent))
    import acme  # type: ignore[import-not-found]

    analysis = acme.vendor.analysis_log(ran.case_dir() / "monitor.jsonl")
    assert tuple(analysis) == (1.0, 2.0, 1e15, 2e15)


@pytest.mark.parametrize(
    "break_it, expected",
    [
        ("raise RuntimeError('no driver')", "RuntimeError: no driver"),
        ("vendor = Acme", "'vendor' is a class"),
        ("vendor = None", "an attribute 'vendor'"),
        ("Acme.compilers = {'hammer': Acme.compilers['anvil']}", "default_compiler"),
        ("del Acme.synchronize", "synchronize"),
    ],
)
def test_a_broken_one_is_named_with_its_file(installed: Path, house: House, break_it: str, expected: str) -> None:
    module = installed / "__init__.py"
    text = module.read_text()
    cut = (
        text.replace("vendor = Acme()", break_it)
        if "del " not in break_it
        else text.replace("def synchronize", "def s")
    )
    module.write_text(cut if cut != text else text + break_it)
    if "Acme.compilers" in break_it:
        module.write_text(text + break_it + "\n")
    one_line_answer(house.run(vendor="acme"), expected, str(module))


def test_the_same_name_twice_is_refused(installed: Path, house: House) -> None:
    shutil.copytree(installed, house.root / "vendors" / "acme")
    one_line_answer(house.run(vendor="acme"), "more than once")
