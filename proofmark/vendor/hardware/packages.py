"""What the processor's packages take: the kernel's powercap interface to the RAPL counters."""

from __future__ import annotations

from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


class ProcessorPackages:
    """Sums the packages' counters, which start again at their range, into one that only grows.

    At 200 W a range of 262 kJ lasts 20 minutes, so sampled once a second no wrap is missed.
    """

    def __init__(self, packages: list[Path]) -> None:
        self._ranges = {package: _microjoules(package / "max_energy_range_uj") for package in packages}
        self._last = {package: _microjoules(package / "energy_uj") for package in packages}
        self._total = 0

    @classmethod
    def found(cls, root: Path = POWERCAP) -> ProcessorPackages | None:
        """The packages of this machine; None if it shows none or only root may read them.

        Not `psys`, which has the packages within it, nor a package once more by another way to the same counter.
        """
        packages = dict[str, Path]()
        try:
            for zone in sorted(root.glob("*rapl*:*")):
                name = (zone / "name").read_text(encoding="ascii").strip()
                if name.startswith("package") and zone.name.count(":") == 1:
                    packages.setdefault(name, zone)
            return cls(list(packages.values())) if packages else None
        except (OSError, ValueError):
            return None

    def joules(self) -> float:
        """Joules of all packages since the first reading.

        Raises:
            OSError: a counter can't be read any more.
            ValueError: it is not a number.
        """
        for package, last in self._last.items():
            now = _microjoules(package / "energy_uj")
            self._total += now - last + (self._ranges[package] if now < last else 0)
            self._last[package] = now
        return self._total / 1e6


def _microjoules(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))
