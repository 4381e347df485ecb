"""Proofmark's own cases, against which another suite's settings are held."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from proofmark.errors import MissingProfile, UsageError
from proofmark.flagperf.adaptation.settings.environment_files import requirements
from proofmark.names import renamed
from proofmark.rules.case_file import CaseFile, load_case_file, other_names
from proofmark.rules.config import comes_to, resolve
from proofmark.rules.legality import OverrideLayer, idle
from proofmark.suite import Suite, find_suites

PUBLISHED, EMBEDDED = "standard", "embedded"
"""The profile with the published sizes, which FlagPerf's settings are for; and that of a case without it."""


@dataclass(frozen=True)
class Verdicts:
    """What our rules say of settings: which stand, and of each that does not, whether it is idle and what is wrong."""

    legal: Mapping[str, Any]
    wrong: Mapping[str, tuple[bool, str]]


@dataclass(frozen=True)
class OurCase:
    """One of Proofmark's cases."""

    suite: Suite
    file: CaseFile

    @property
    def name(self) -> str:
        """The case as `<suite>/<case>`."""
        return f"{self.file.suite}/{self.file.case}"

    @property
    def page(self) -> str:
        """Where the checkout says what its data directory must hold."""
        return f"docs/cases/{self.name}.md"

    def setting(self, key: str) -> str | None:
        """Our name of a setting that is called so elsewhere, or here."""
        return key if key in self.file.settings else renamed(key, self.file.settings)

    def parameter(self, key: str) -> str | None:
        """Our name of a parameter of the task that is called so elsewhere, or here."""
        parameters = self.file.parameters.model_dump()
        return key if key in parameters else renamed(key, parameters)

    def held(self, vendor: str, values: Mapping[str, Any], scale: str = "", compiler: str | None = None) -> Verdicts:
        """Hold settings of a vendor's own file to the rules of the house."""
        base = {key: setting.value for key, setting in self.file.settings.items()}
        layer = OverrideLayer("", values, closed=self.suite.closed, vendors_own=True)
        resolution = resolve(self.file, vendor, [layer], compiler)
        resolution = self.suite.settle(resolution, scale, "") if not resolution.problems else resolution
        wrong = {problem.key: problem.what for problem in resolution.problems}
        legal = {key: value for key, value in values.items() if key not in wrong}
        found: dict[str, tuple[bool, str]] = {}
        for key in wrong.keys() & values.keys():
            same = idle(key, self._plain(key, values[key]), base, partial(comes_to, compiler)) if key in base else None
            where = f" (in profile {self.file.profile})" if same is not None else ""
            found[key] = same is not None, wrong[key].removesuffix("; remove it") + where
        if found or not wrong:
            return Verdicts(legal, found)
        return Verdicts({}, dict.fromkeys(values, (False, "; ".join(wrong.values()))))

    def _plain(self, key: str, value: Any) -> Any:
        return self.file.settings[key].normalise(value)


class OurCases:
    """All cases of Proofmark, by suite and name."""

    def __init__(self, house: Path) -> None:
        """Read the cases of the checkout in `house`.

        Raises:
            UsageError: there are no suites, or one is broken.
            ConfigurationError: a case's numbers are wrong.
        """
        if not (house / "suites").is_dir():
            raise UsageError(
                f"{house}: no folder suites: call it in Proofmark's checkout, whose cases it compares with"
            )
        needed = house / "requirements.txt"
        lines = requirements(needed.read_text(encoding="utf-8")) if needed.is_file() else ()
        self.packages = frozenset(canonicalize_name(line.name) for line in lines if line.value)
        """What is installed here for every vendor."""
        self._cases: dict[str, OurCase] = {}
        self._also: dict[str, dict[str, str]] = {}
        for suite in find_suites(house / "suites").values():
            self._also[suite.name] = {}
            for module in sorted((house / "suites" / suite.name).glob("test_*.py")):
                self._add(suite, module.with_name(f"{module.stem.removeprefix('test_')}.yaml"))

    def _add(self, suite: Suite, path: Path) -> None:
        common = path.with_name("contract.yaml")
        kind = suite.case_type.parameters_type
        try:
            file = load_case_file(path, suite.name, PUBLISHED, common, kind)
        except MissingProfile:
            file = load_case_file(path, suite.name, EMBEDDED, common, kind)
        case = OurCase(suite, file.model_copy(update={"elsewhere": {}}))  # what is idle there is left out
        self._cases[case.name] = case
        self._also[suite.name] |= dict.fromkeys(other_names(path), file.case)

    def find(self, suite: str, theirs: str) -> OurCase | None:
        """The case that FlagPerf, or a person, calls by this name."""
        name = (
            theirs if f"{suite}/{theirs}" in self._cases else renamed(theirs, self.names(suite), self._also.get(suite))
        )
        return self._cases.get(f"{suite}/{name}")

    def names(self, suite: str) -> list[str]:
        """The names of a suite's cases."""
        return [case.file.case for case in self._cases.values() if case.file.suite == suite]

    def nearest(self, suite: str, theirs: str) -> str:
        """Why a case is not here, and which comes nearest; all of them where none is like it."""
        names = self.names(suite)
        near = difflib.get_close_matches(theirs.lower(), names, 1)
        what = f"the nearest is '{near[0]}'" if near else f"it has {', '.join(names) or 'none'}"
        return f"there is no such case in {suite}; {what}"
