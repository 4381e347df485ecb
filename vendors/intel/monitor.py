"""Energy of the processor packages: the kernel's powercap interface to the RAPL counters."""

from __future__ import annotations

from pathlib import Path

from proofmark.vendor import Reading

POWERCAP = Path("/sys/class/powercap")


class PackageEnergy:
    """Sums the package counters, which start again at their range, into one that only grows.

    At 200 W a range of 262 kJ lasts 20 minutes, so sampled once a second no wrap is missed.
    """

    def __init__(self, packages: list[Path]) -> None:
        self._ranges = {package: _microjoules(package / "max_energy_range_uj") for package in packages}
        self._last = {package: _microjoules(package / "energy_uj") for package in packages}
        self._total = 0

    @classmethod
    def found(cls, root: Path = POWERCAP) -> PackageEnergy | None:
        """The packages of this machine; None if it shows none or only root may read them."""
        zones = [zone for zone in sorted(root.glob("intel-rapl:*")) if zone.name.count(":") == 1]
        try:
            packages = [zone for zone in zones if (zone / "name").read_text(encoding="ascii").startswith("package")]
            return cls(packages) if packages else None
        except OSError:
            return None

    def sample(self) -> list[Reading]:
        """Joules of all packages since the first reading."""
        for package, last in self._last.items():
            now = _microjoules(package / "energy_uj")
            self._total += now - last + (self._ranges[package] if now < last else 0)
            self._last[package] = now
        return [Reading(0, energy_j=self._total / 1e6)]

    def close(self) -> None:
        """Nothing is held open."""


def _microjoules(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))
