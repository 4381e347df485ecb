"""What an engine in a container is given of its host: files, variables; and how that keeps it from the rest."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import proofmark
from proofmark.launch.engine_container import EngineContainer
from proofmark.vendor.isolation import COMPILED, VendorPlace
from proofmark.vendor.registry import FoundVendor
from proofmark.wall.isolation import Isolation

THREADS = ("GOMP_*", "KMP_*", "MKL_*", "OMP_*", "OPENBLAS_*")
"""Variables of this process's that hold there too: how many threads compute is the user's to say."""


@dataclass(frozen=True)
class Given:
    """Files and folders, each at the place that it has on the host; where modules are found; variables that the vendor
    names in its isolation.yaml; how it is kept."""

    read: tuple[tuple[Path, Path], ...]
    modules: tuple[Path, ...]
    named: Mapping[str, str]
    isolation: Isolation

    @classmethod
    def of(
        cls,
        found: FoundVendor,
        files: Iterable[Path],
        container: EngineContainer,
        hidden: Iterable[str | Path | None],
    ) -> Given:
        """For an engine of a vendor's: Proofmark's own code, the vendor's package, and what `files` there are.

        Args:
            hidden: places that no engine may see.
        """
        own = Path(proofmark.__file__).resolve().parent
        place = VendorPlace.of(found.name, found.vendors_dir)
        package = place.directory.absolute()
        if found.is_local:
            modules = [own, package.parent / "__init__.py", package]
            roots = (own.parent, package.parent.parent)
        else:  # the outermost package alone, and nothing of what is installed beside it
            outermost = place.readable[0].absolute()
            modules, roots = [own, outermost], (own.parent, outermost.parent)
        read = dict.fromkeys(_absolute(path) for path in [*modules, *files] if path.exists())
        isolation = _isolation(container, [Path(os.path.realpath(each)) for each in hidden if each])
        return cls(tuple((path, path) for path in read), tuple(dict.fromkeys(roots)), place.environment, isolation)

    def variables(self, directory: Path, declared: Mapping[str, str]) -> dict[str, str]:
        """All that it has beside those of its image; `directory` is its own."""
        threads = {
            name: value
            for name, value in os.environ.items()
            if any(fnmatch.fnmatchcase(name, each) for each in THREADS)
        }
        places = {"HOME": str(directory), "TMPDIR": str(directory)}
        python = {"PYTHONPATH": os.pathsep.join(map(str, self.modules)), "PYTHONDONTWRITEBYTECODE": "1"}
        return (
            threads
            | dict(self.named)
            | dict.fromkeys(COMPILED, str(directory / "compiled"))
            | dict(declared)
            | places
            | python
        )


def _isolation(container: EngineContainer, hidden: Sequence[Path]) -> Isolation:
    """How well: by what the engine is asked for, since what runs in there is the vendor's from its first line on."""
    gaps = []
    if container.privileged:
        gaps.append("it has all of its host: privileged, as the vendor's container.yaml asks and cluster.yaml allows")
    for mount in container.mounts:
        source, _, *how = mount.split(":")
        seen = Path(os.path.realpath(source))
        if "ro" not in ",".join(how).split(","):
            gaps.append(f"{source} can be written, as `mounts` of cluster.yaml says")
        elif any(seen.is_relative_to(place) or place.is_relative_to(seen) for place in hidden):
            gaps.append(
                f"{source} can be read, as `mounts` of cluster.yaml says, and what engines must not see is there"
            )
    return Isolation(
        kind="process" if gaps else "wall",
        container=True,
        network="asked for" if container.network else "closed",
        devices=container.devices,
        gaps=tuple(gaps),
    )


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))
