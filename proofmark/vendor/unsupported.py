"""What a vendor expects not to work: `unsupported.yaml` beside its `chips.yaml`.

It lists cases at precisions that the vendor does not declare. Any other UNSUPPORTED is a finding, with its exit code.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proofmark.errors import ConfigurationError, Problem
from proofmark.names import hint
from proofmark.rules.config import EffectiveConfig
from proofmark.rules.yaml.strict import load_mapping
from proofmark.rules.yaml.typed import problems_of
from proofmark.vendor.contract import Vendor
from proofmark.vendor.hardware.chips import Precision


class Expected(BaseModel):
    """A case, as `<suite>/<case>`, that a compiler is not to run at a precision; null is the framework by itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    case: str = Field(min_length=1)
    compiler: str | None = None
    precision: Precision
    reason: str = Field(min_length=1)

    @property
    def place(self) -> tuple[str, str | None, str]:
        """The key by which the entry is found."""
        return self.case, self.compiler, self.precision


class _UnsupportedFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    unsupported: tuple[Expected, ...]


def load_expected(path: Path) -> tuple[Expected, ...]:
    """Read a vendor's `unsupported.yaml`; no file is no expectation.

    Raises:
        ConfigurationError: with every problem in it.
    """
    if not path.exists() and not path.is_symlink():
        return ()
    try:
        entries = _UnsupportedFile.model_validate(load_mapping(path, path.parent)).unsupported
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, str(path), model=_UnsupportedFile)) from None
    places = [entry.place for entry in entries]
    twice = [key for key, place in _keyed(places) if places.count(place) > 1]
    if twice:
        raise ConfigurationError([Problem(str(path), key, "is defined more than once") for key in twice])
    return entries


def _keyed(places: Sequence[tuple[str, str | None, str]]) -> list[tuple[str, tuple[str, str | None, str]]]:
    return [(f"unsupported.{number}", place) for number, place in enumerate(places)]


def contradictions(path: Path, entries: Sequence[Expected], vendor: Vendor, training: Collection[str]) -> list[Problem]:
    """Entries that say the opposite of what the vendor declares: what is declared must work.

    Args:
        path: where they stand.
        entries: all of them.
        vendor: whose they are.
        training: suites whose cases have no compiler.
    """
    problems = []
    for number, entry in enumerate(entries):
        if what := _contradiction(entry, vendor, training):
            problems.append(Problem(str(path), f"unsupported.{number}", what))
    return problems


def _contradiction(entry: Expected, vendor: Vendor, training: Collection[str]) -> str | None:
    suite = entry.case.partition("/")[0]
    if suite in training:
        if entry.compiler is not None:
            return f"a case of {suite} has no compiler: remove compiler {entry.compiler}"
        declared, where = vendor.training_precisions, "training_precisions"
    elif entry.compiler is None:
        declared, where = vendor.framework_precisions, "framework_precisions"
    elif entry.compiler not in vendor.compilers:
        known = sorted(vendor.compilers)
        return f"unknown compiler '{entry.compiler}': expected one of {', '.join(known)}{hint(entry.compiler, known)}"
    else:
        declared, where = vendor.compilers[entry.compiler].precisions, f"the precisions of compiler {entry.compiler}"
    if entry.precision in declared:
        return f"{entry.precision} is among {where}, and what is declared must work: remove it there or here"
    return None


def unknown_cases(path: Path, entries: Sequence[Expected], cases: Collection[str]) -> list[Problem]:
    """Entries that are about no case.

    Args:
        cases: all there are, as `<suite>/<case>`.
    """
    return [
        Problem(str(path), f"unsupported.{number}.case", f"there is no case '{entry.case}'{hint(entry.case, cases)}")
        for number, entry in enumerate(entries)
        if entry.case not in cases
    ]


def asked_for_by_itself(config: EffectiveConfig, own: str, listed: str | None) -> list[Problem]:
    """A vendor's file that asks for what the vendor lists: the list is for what users ask for.

    Args:
        own: the origin of the file's overrides.
        listed: why the run is not to work, None where it is not listed.
    """
    chosen = [override for override in config.overrides if override.key in ("precision", "fp16", "compiler")]
    asked = [override for override in chosen if override.origin == own]
    if listed is None or any(override.origin.startswith("--") for override in chosen):
        return []
    what = f"asks for what unsupported.yaml lists ({listed}): remove it there or here"
    return [Problem(own, override.key, what) for override in asked]


def expected_reason(entries: Sequence[Expected], case: str, compiler: str | None, precision: str) -> str | None:
    """Why a run is not to work, as the vendor has it; None where it is to."""
    return next((entry.reason for entry in entries if entry.place == (case, compiler, precision)), None)
