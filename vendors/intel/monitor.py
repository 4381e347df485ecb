"""Energy of the processor packages."""

from __future__ import annotations

from proofmark.vendor import ProcessorPackages, Reading


class PackageEnergy:
    """Of one device: all packages of this machine."""

    def __init__(self, packages: ProcessorPackages) -> None:
        self._packages = packages

    @classmethod
    def found(cls) -> PackageEnergy | None:
        """None where nothing can be read."""
        packages = ProcessorPackages.found()
        return cls(packages) if packages else None

    def sample(self) -> list[Reading]:
        """Joules of all packages since the first reading."""
        return [Reading(0, energy_j=self._packages.joules())]

    def close(self) -> None:
        """Nothing is held open."""
