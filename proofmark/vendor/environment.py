"""`vendors/<name>/environment.yaml`: variables and packages that a vendor's processes need, in all cases or in one.

Variables are for the processes in which the vendor's code runs, and for no other. They stand in the record, and may not
be those by which the suite, torchrun, the linker or Python's import work.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from proofmark.errors import ConfigurationError, Problem
from proofmark.names import hint
from proofmark.process.environment import let_pass, tidy_environment
from proofmark.process.warm.imports import READ_ONCE
from proofmark.rules.yaml.typed import load_model, number_as_text

FILE = "environment.yaml"

LONGEST, MOST = 200, 64
"""Characters of a requirement, and how many there may be: all are looked for before any case runs."""

ASSIGNED = "says which devices are used, which the suite assigns"

RULES = (
    (r"PROOFMARK_.*|PYTEST_.*|PY_COLORS", "is the suite's own"),
    (r"LD_.*|DYLD_.*|PYTHON.*|BASH_ENV|ENV|IFS|SHELLOPTS", "changes which code runs"),
    (r"OPENSSL_.*|OMP_TOOL.*|.*INJECTION(32|64)?_PATH|GCONV_PATH|LOCPATH|GLIBC_TUNABLES", "changes which code runs"),
    (r"TRITON_.*PLUGIN_PATHS?|COVERAGE_.*|SETUPTOOLS_.*|GIT_.*", "changes which code runs"),
    (r"TORCH_LOGS|TORCH_PYTHON_NATIVE_.*|LOKY_PICKLER", "changes which code runs"),  # they name a module to import
    (r"ROCM_(HOME|PATH)|HIP_PATH|SYCL_OVERRIDE_.*", "changes which code runs"),
    (r".*LIBITTNOTIFY.*|.*JIT_PROFILER.*", "changes which code runs"),
    (r"ROCP_.*|ROCPROFILER_.*|HSA_TOOLS_.*|XPTI_.*|UR_ADAPTERS_.*|ZE_ENABLE_ALT_DRIVERS", "changes which code runs"),
    (r"OCL_ICD_.*|.*_TOOLS?_LIB(RAR(Y|IES))?", "changes which code runs"),
    (r"CC|CXX|C(PLUS)?_INCLUDE_PATH|CPATH|LIBRARY_PATH", "changes which code runs"),
    (r"TORCH_(LOGS_OUT|D?TRACE)|KINETO_.*", "has a library write a file before there is a wall"),
    (r"PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|TEMP|TMP|XDG_.*|LANG|LC_.*|TZ", "is the user's or the suite's to set"),
    (
        r"(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)|LOCAL_WORLD_SIZE|MASTER_(ADDR|PORT)|TORCHELASTIC_.*|NODE_RANK",
        "is torchrun's",
    ),
    (r".*_VISIBLE_(DEVICES|CORES)|CUDA_DEVICE_ORDER", ASSIGNED),
    (
        r"(.*_)?(TOKEN|PASS|PAT)|.*(SECRET|PASSW|PASSPHRASE|PWD|CREDENTIAL|API_?KEY|ACCESS_KEY).*",
        "looks like a secret, and would be on record",
    ),
)
"""Patterns of names that may not be set, and why."""

AT_START = (*READ_ONCE, "ATEN_", "TRANSFORMERS_")
"""How the names of variables begin that libraries heed before a vendor's code runs, as they are imported or make a
model: none of these, but for those of RULES, has one load code."""

LATER = "PROOFMARK_DECLARED"
"""The variable with all others that are declared, as JSON, until they may be heeded."""


def may_not_be_set(name: str) -> str | None:
    """Why a variable may not be set; None if it may."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name):
        return "is not a valid variable name (letters, digits, underscore)"
    return next((why for pattern, why in RULES if re.fullmatch(pattern, name, re.IGNORECASE)), None)


def _is_free(name: str) -> str:
    if why := may_not_be_set(name):
        raise ValueError(f"{name} {why}")
    return name


def _is_a_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError("has a value that is not one line of text")
    return value


def _is_a_requirement(text: str) -> str:
    try:
        requirement = Requirement(text[: LONGEST + 1])
        if len(text) > LONGEST:
            raise InvalidRequirement(text)
        if requirement.marker is not None:
            requirement.marker.evaluate()  # one that asks for what nobody knows raises
    except (InvalidRequirement, UndefinedEnvironmentName, RecursionError):
        raise ValueError(f"{text!r} is not a package with versions, such as acme-runtime>=2.1") from None
    if requirement.url:
        raise ValueError(f"{text!r} is an address: name the package and its version, and install it yourself")
    return text


Variable = Annotated[str, AfterValidator(_is_free)]
Value = Annotated[str, BeforeValidator(number_as_text), AfterValidator(_is_a_line)]


class Needs(BaseModel):
    """What processes need: all may be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    variables: dict[Variable, Value] = Field(default_factory=dict)
    requirements: Annotated[tuple[Annotated[str, AfterValidator(_is_a_requirement)], ...], Field(max_length=MOST)] = ()


class Environment(Needs):
    """The keys of environment.yaml: what all cases need, and what one of `<suite>/<case>` needs beside."""

    cases: dict[str, Needs] = Field(default_factory=dict)

    def variables_of(self, case: str) -> dict[str, str]:
        """The variables of a case's processes; its own win."""
        return self.variables | (self.cases[case].variables if case in self.cases else {})

    def requirements_of(self, case: str) -> tuple[str, ...]:
        """The packages that its processes need."""
        return self.requirements + (self.cases[case].requirements if case in self.cases else ())


def load_environment(directory: Path) -> Environment:
    """Read a vendor's `environment.yaml`; no file is nothing.

    Raises:
        ConfigurationError: with every problem in it.
    """
    path = directory / FILE
    if not path.exists() and not path.is_symlink():
        return Environment()
    return load_model(path, Environment, directory)


def variables_of(directory: Path, case: str) -> Mapping[str, str]:
    """The variables that a vendor declares for the processes of `<suite>/<case>`.

    Raises:
        ConfigurationError: its file is wrong.
    """
    return load_environment(directory).variables_of(case)


def environment_of(host: Mapping[str, Any]) -> dict[str, str]:
    """What the processes that run the vendor's code begin with, by the plain form of a case's HostSettings: what the
    vendor declares, and what keeps them from leaving things behind."""
    return {**referee_environment_of(host), **at_start(declared_of(host))}


def declared_of(host: Mapping[str, Any]) -> dict[str, str]:
    """What the vendor declares alone."""
    return dict(host.get("environment", {}))


def at_start(declared: Mapping[str, str]) -> dict[str, str]:
    """What of declared variables a process begins with that will run the vendor's code; it takes on the others as it is
    closed in. A library that it imports before that may load what a variable names, and nobody knows all of these."""
    later = {name: value for name, value in declared.items() if not name.startswith(AT_START)}
    begins_with = {name: value for name, value in declared.items() if name not in later}
    return begins_with | ({LATER: json.dumps(later)} if later else {})


def take_on() -> None:
    """Have the variables that are left: nothing is imported any more before this process is closed in."""
    later: dict[str, str] = json.loads(os.environ.pop(LATER, "{}"))
    if later:
        os.environ |= later
        let_pass(later)


def referee_environment_of(host: Mapping[str, Any]) -> dict[str, str]:
    """What the case's other processes are given, which hold labels, clock and log: nothing that the vendor declares."""
    return tidy_environment(Path(host["cache_dir"]))


def strangers(directory: Path, known: Collection[str]) -> list[Problem]:
    """Entries that are about no case.

    Args:
        directory: the vendor's.
        known: all cases that there are, as `<suite>/<case>`.

    Raises:
        ConfigurationError: the file is wrong.
    """
    others = [case for case in load_environment(directory).cases if case not in known]
    where = str(directory / FILE)
    return [Problem(where, f"cases.{case}", f"there is no such case{hint(case, known)}") for case in others]


def assigned(directory: Path, variable: str) -> list[Problem]:
    """Entries that set the vendor's own visible-devices variable, whatever its name: they would win over what the user
    chose.

    Raises:
        ConfigurationError: the file is wrong.
    """
    environment = load_environment(directory)
    needs = {"": environment, **{f"cases.{case}.": own for case, own in environment.cases.items()}}
    keys = [f"{key}variables.{variable}" for key, own in needs.items() if variable in own.variables]
    return [Problem(str(directory / FILE), key, ASSIGNED) for key in keys]


def missing_packages(directory: Path, cases: Iterable[str]) -> list[Problem]:
    """Packages that cases need and this machine has not: one line, with what installs them. Nothing is installed.

    Raises:
        ConfigurationError: the file is wrong.
    """
    environment = load_environment(directory)
    needed = dict.fromkeys(requirement for case in cases for requirement in environment.requirements_of(case))
    missing = [requirement for requirement in needed if not _is_installed(Requirement(requirement))]
    if not missing:
        return []
    what = f"not installed on {platform.node()}: python -m pip install {shlex.join(missing)}"
    return [Problem(str(directory / FILE), "requirements", what)]


def require(directory: Path, case: str) -> None:
    """Look whether this host has the packages that a case needs.

    Raises:
        ConfigurationError: it has not, or the file is wrong.
    """
    if problems := missing_packages(directory, [case]):
        raise ConfigurationError(problems)


def installed(directory: Path, case: str) -> dict[str, str]:
    """The packages that a case needs, with the versions that are here; what a marker leaves out is not.

    Raises:
        ConfigurationError: the file is wrong.
    """
    found = {name: _version(name) for name in map(_name, load_environment(directory).requirements_of(case))}
    return {name: version for name, version in found.items() if version is not None}


def _is_installed(requirement: Requirement) -> bool:
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    version = _version(requirement.name)
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
