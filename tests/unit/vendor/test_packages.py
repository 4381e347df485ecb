"""What the processor's packages take, of counters as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.vendor import ProcessorPackages

NAMES = {
    "intel-rapl:0": "package-0",
    "intel-rapl:1": "package-1",
    "intel-rapl:2": "psys",
    "intel-rapl:0:0": "core",
    "intel-rapl-mmio:0": "package-0",
}


def powercap(root: Path, energies: dict[str, int]) -> None:
    for zone, energy in energies.items():
        (root / zone).mkdir(parents=True, exist_ok=True)
        (root / zone / "name").write_text(NAMES[zone] + "\n")
        (root / zone / "max_energy_range_uj").write_text("1000000\n")
        (root / zone / "energy_uj").write_text(f"{energy}\n")


def test_energy_grows_through_a_wrap_and_counts_no_part_twice(tmp_path: Path) -> None:
    powercap(tmp_path, dict.fromkeys(NAMES, 900_000))
    packages = ProcessorPackages.found(tmp_path)
    assert packages is not None and packages.joules() == 0
    powercap(tmp_path, {"intel-rapl:0": 100_000, "intel-rapl-mmio:0": 100_000, "intel-rapl:1": 950_000})
    powercap(tmp_path, {"intel-rapl:2": 0})
    assert packages.joules() == pytest.approx(0.25)


def test_none_without_counters(tmp_path: Path) -> None:
    assert ProcessorPackages.found(tmp_path) is None
    powercap(tmp_path, {"intel-rapl:0": 0})
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("none\n")
    assert ProcessorPackages.found(tmp_path) is None
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    assert ProcessorPackages.found(tmp_path) is None
