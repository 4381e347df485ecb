"""Where FlagPerf keeps what, and what a vendor has there."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from proofmark.errors import UsageError, harmless
from proofmark.names import hint

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_SCALE = re.compile(r"config_(?P<scale>.+)\.py")


_DOCUMENTS = frozenset({".md", ".png", ".jpg", ".jpeg", ".svg", ".pyc"})
"""Endings of files that say nothing to a program, and of those that Python makes itself."""


class CaseFolder(NamedTuple):
    """A vendor's folder of one case: `training/<vendor>/<model>-<framework>`."""

    model: str
    framework: str
    path: Path

    @property
    def scale_files(self) -> list[tuple[str, Path]]:
        """Files of settings, by the scale in their names."""
        found = ((_SCALE.fullmatch(path.name), path) for path in sorted((self.path / "config").glob("config_*.py")))
        return [(match["scale"], path) for match, path in found if match and not match["scale"].endswith("common")]

    @property
    def nameless_files(self) -> list[Path]:
        """Files that are called like settings, but by a name that FlagPerf would never look for."""
        found = {path for path in (self.path / "config").glob("config_*") if path.is_file() and path.suffix != ".pyc"}
        return sorted(found - {path for _, path in self.scale_files})


@dataclass(frozen=True)
class Checkout:
    """A FlagPerf checkout, or its folder training or inference alone; `vendor` as FlagPerf calls it."""

    root: Path
    vendor: str
    training: Path | None
    inference: Path | None

    def shown(self, path: Path | str) -> str:
        """A file as people name it: from the checkout's top, in one line that any file of ours can hold."""
        inside = Path(path).is_relative_to(self.root)
        return harmless(str(Path(path).relative_to(self.root) if inside else path))

    @property
    def case_folders(self) -> Iterator[CaseFolder]:
        """The vendor's cases of training."""
        folder = self.training / self.vendor if self.training else None
        for path in sorted(folder.iterdir()) if folder and folder.is_dir() else []:
            model, dash, framework = path.name.rpartition("-")
            if dash and path.is_dir():
                yield CaseFolder(model, framework, path)

    def base_of(self, folder: CaseFolder) -> Path:
        """The settings of a case that all vendors share."""
        return (self.training or self.root) / "benchmarks" / folder.model / folder.framework / "config"

    @property
    def engines(self) -> list[Path]:
        """The vendor's compilers."""
        return self._files(self.inference, f"inference_engine/{self.vendor}/*.py")

    @property
    def analyses(self) -> list[Path]:
        """The modules that read the logs of the vendor's monitors, and know the peaks."""
        return self._files(self.inference, f"docker_images/{self.vendor}/{self.vendor}_analysis.py")

    @property
    def monitors(self) -> list[Path]:
        """The vendor's monitors."""
        own = f"{self.vendor}/{self.vendor}_monitor.py"
        return [*self._files(self.training, own), *self._files(self.inference, f"docker_images/{own}")]

    @property
    def images(self) -> list[Path]:
        """The files that the vendor's images are built from."""
        places = [(self.training, f"{self.vendor}/docker_image*"), (self.inference, f"docker_images/{self.vendor}")]
        names = ("Dockerfile", "*_install.sh")
        return [path for part, place in places for name in names for path in self._files(part, f"{place}/**/{name}")]

    @property
    def vendors(self) -> list[str]:
        """All vendors that have something in the checkout."""
        places = []
        if self.training:
            places += [path for path in self.training.iterdir() if path.name not in ("benchmarks", "run_benchmarks")]
        if self.inference:
            for room in ("inference_engine", "docker_images"):
                places += (self.inference / room).glob("*")
        names = {path.name for path in places if path.is_dir() and _NAME.fullmatch(path.name)}
        return sorted(names - {"utils", "result", "docs", "__pycache__"})

    @property
    def inference_cases(self) -> list[Path]:
        """Folders with an inference case's settings, of those that the vendor may run."""
        configs = self.inference / "configs" if self.inference else None
        return sorted(path for path in configs.iterdir() if path.is_dir()) if configs and configs.is_dir() else []

    @property
    def elsewhere(self) -> list[Path]:
        """What the vendor has in parts of FlagPerf that have no suite here."""
        places = ("base/vendors", "operation/vendors", "generate/tasks")
        return [path for place in places if (path := self.root / place / self.vendor).is_dir()]

    @property
    def own_folders(self) -> list[Path]:
        """The folders that are the vendor's alone."""
        places = [self.training] if self.training else []
        places += [self.inference / name for name in ("inference_engine", "docker_images")] if self.inference else []
        return [folder for place in places if (folder := place / self.vendor).is_dir()]

    @property
    def own_files(self) -> Iterator[Path]:
        """All that the vendor has in folders of its own, and lists of packages beside inference cases; no documents."""
        vendor = self.vendor
        inference = (f"inference_engine/{vendor}/**/*", f"docker_images/{vendor}/**/*", f"benchmarks/*/*/{vendor}_*")
        for part, places in ((self.training, (f"{vendor}/**/*",)), (self.inference, inference)):
            for path in (path for place in places for path in self._files(part, place)):
                if path.is_file() and path.suffix.lower() not in _DOCUMENTS and path.name != ".gitkeep":
                    yield path

    @staticmethod
    def _files(part: Path | None, pattern: str) -> list[Path]:
        return [path for path in sorted(part.glob(pattern)) if path.stem != "__init__"] if part else []


def class_name(vendor: str) -> str:
    """What the class of a vendor's devices is called."""
    return vendor[:1].upper() + vendor[1:]


def open_checkout(path: Path, vendor: str) -> Checkout:
    """Find what a vendor has in a checkout.

    Raises:
        UsageError: it is no checkout, or the vendor's name is none that a folder may have, or is not there.
    """
    if not _NAME.fullmatch(vendor) or keyword.iskeyword(vendor) or keyword.iskeyword(class_name(vendor)):
        raise UsageError(f"--vendor {vendor!r:.80}: expected a name of letters, digits and underscores, as acme")
    root = path.absolute()
    if not root.is_dir():
        raise UsageError(f"{path}: expected the folder of a FlagPerf checkout")
    training = _part(root, "training", "run_benchmarks")
    inference = _part(root, "inference", "inference_engine")
    if training is None and inference is None:
        raise UsageError(
            f"{path}: no FlagPerf checkout: expected training/run_benchmarks or inference/inference_engine in it, as "
            "FlagPerf has had them since 2022 and 2023"
        )
    checkout = Checkout(root, vendor, training, inference)
    known = checkout.vendors
    if vendor not in known:
        there = ", ".join(known) or "none"
        raise UsageError(f"{path}: nothing of vendor '{vendor}' is there: it has {there}{hint(vendor, known)}")
    for folder in checkout.own_folders:
        if not folder.resolve().is_relative_to(root.resolve()):
            raise UsageError(f"{path}: {checkout.shown(folder)}: is a link out of it; put the folder itself there")
    return checkout


def _part(root: Path, name: str, mark: str) -> Path | None:
    return next((part for part in (root / name, root) if (part / mark).is_dir()), None)
