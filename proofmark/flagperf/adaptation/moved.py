"""What was read of an adaptation so far: rows of the table, our files, and what the vendor's package will say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from proofmark.errors import harmless
from proofmark.flagperf.adaptation.fates import Fate, MutableCheck, Row
from proofmark.flagperf.adaptation.layout import CaseFolder, Checkout
from proofmark.flagperf.adaptation.our_cases import OurCases
from proofmark.flagperf.adaptation.python.source import PythonFile
from proofmark.rules.yaml.key_lines import lines_of
from proofmark.rules.yaml.strict import text_of


@dataclass
class CaseNeeds:
    """Variables and packages of one case."""

    variables: dict[str, str] = field(default_factory=dict)
    requirements: list[str] = field(default_factory=list)


@dataclass
class VendorFacts:
    """What the vendor's package says of itself."""

    precisions: set[str] = field(default_factory=set)
    backend: tuple[str, str] | None = None
    """torch's name of it, and the file that says so."""
    visible_devices_variable: str | None = None
    chips: set[str] = field(default_factory=set)
    peaks: dict[str, tuple[float, str]] = field(default_factory=dict)
    """FLOP/s by precision, with the file that says so."""
    compiler: str | None = None
    needs: dict[str, CaseNeeds] = field(default_factory=dict)
    """By `<suite>/<case>`."""


@dataclass
class Moved:
    """What was read of an adaptation so far, and what is written from it."""

    checkout: Checkout
    cases: OurCases
    rows: list[Row] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Ours, by their paths."""
    facts: VendorFacts = field(default_factory=VendorFacts)
    check: MutableCheck = field(default_factory=lambda: MutableCheck(0, 0, 0, 0))
    read: set[Path] = field(default_factory=set)
    """Files of which no row may be left to tell: they have no keys, or others say them again."""
    lines: dict[Path, Mapping[str, int]] = field(default_factory=dict)
    """Of the keys of each YAML file that was told of."""

    @property
    def package(self) -> str:
        """The folder of the vendor's package."""
        return f"vendors/{self.checkout.vendor}"

    @property
    def chips_file(self) -> str:
        """The vendor's peaks."""
        return f"{self.package}/chips.yaml"

    def take_peak(self, precision: str, flops: float, file: Path | str) -> tuple[Fate, dict[str, str]]:
        """Keep a chip's peak, and return what became of it."""
        known, whose = self.facts.peaks.setdefault(precision, (flops, self.checkout.shown(file)))
        if known != flops and len(self.facts.chips) < 2:  # each of several has its own
            return "illegal", {"why": f"{whose} says {known:g}: a chip has one peak at a precision"}
        return "renamed", {"here": f"{self.chips_file}: peaks: {precision}", "why": "name its source yourself"}

    def take_backend(self, backend: str, file: Path | str) -> tuple[Fate, dict[str, str]]:
        """Keep the backend of processes, and return what became of it. A package has one, whatever the case and the
        scale."""
        if not backend.replace(":", "").replace(",", "").isalnum():
            return "illegal", {"why": "is not a backend's name"}
        self.facts.backend = known, whose = self.facts.backend or (backend, self.checkout.shown(file))
        if known != backend:
            return "illegal", {"why": f"{whose} says {known!r}: a vendor has one backend, for all its cases"}
        return "renamed", {"here": f"{self.package}/__init__.py: distributed_backend"}

    def absence(self, folder: CaseFolder) -> str:
        """What is not here of a training's folder that there is no case for."""
        elsewhere = self.cases.find("training", folder.model) is not None
        return f"its framework {folder.framework} is not here" if elsewhere else "its case is not here"

    def not_written(self, path: str, why: str) -> None:
        """Of what was to stand in a file of ours that there is no reason to write: it is the user's to move."""
        self.rows = [
            replace(row, fate="by hand", here="", why=why) if row.here.startswith(f"{path}: ") else row
            for row in self.rows
        ]

    def tell(self, file: Path | str, line: int, key: str, value: Any, fate: Fate, **remarks: str) -> None:
        """Add a row. What is told may name files and folders, which may be called anything."""
        remarks = {name: harmless(text) for name, text in remarks.items()}
        self.rows.append(Row(self.checkout.shown(file), line, key, value, fate, **remarks))

    def stands_nowhere(self, since: int) -> frozenset[str]:
        """Keys of which the rows from one on say that they were not taken over, and are no part of a run here."""
        return frozenset(row.key for row in self.rows[since:] if row.fate in ("illegal", "unknown"))

    def tell_key(self, file: Path, key: str, value: Any, fate: Fate, **remarks: str) -> None:
        """Add a row of a YAML file's key, at its line."""
        if file not in self.lines:
            self.lines[file] = lines_of(text_of(file, self.checkout.root))
        self.tell(file, self.lines[file].get(key, 0), key, value, fate, **remarks)

    def tell_refused(self, file: PythonFile, known: frozenset[tuple[str, int]] = frozenset()) -> None:
        """Add a row for each line that was not read, but for those that were told already."""
        for each in file.refused:
            if (each.file, each.line) not in known:
                self.tell(each.file, each.line, each.key, None, "refused", why=each.what)

    def write_yaml(self, path: str, values: Mapping[str, Any], remark: str) -> None:
        """Write a file of ours."""
        text = yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True) if values else ""
        self.files[path] = f"# {remark}\n{text}"
