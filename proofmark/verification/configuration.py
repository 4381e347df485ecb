"""Whether a record's configuration is one that the suite's files allow: resolved once more from what was overridden."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from proofmark.errors import Problem, ProofmarkError, reason
from proofmark.git import run_git
from proofmark.literal import literal
from proofmark.record.envelope import CaseRecord
from proofmark.rules.case_file import CaseFile, Parameters, content_hash, content_of, load_case_file
from proofmark.rules.config import resolve
from proofmark.rules.legality import Override, OverrideLayer
from proofmark.suite import Suite
from proofmark.vendor.stray_files import CONFIGS
from proofmark.verification.made_up import UNREADABLE

COMMON = "contract.yaml"

PATIENCE = 20.0
"""Seconds that git may take to show a file of a commit."""

SETTLED = 3
"""Overrides that follow from others at most: of the compiler, the scenario and the scale. They are the last."""


@dataclass(frozen=True)
class Held:
    """What is wrong with a configuration, in parts of sentences, or why it could not be held to anything."""

    faults: tuple[str, ...] = ()
    note: str | None = None


def held(suite: Suite, record: CaseRecord) -> Held:
    """Hold a record's configuration to the files of its case here, if they are those that it was resolved from."""
    folder = folder_of(suite)
    path = next((path for path in folder.glob("*.yaml") if path.stem == record.case), None)
    common = folder / COMMON
    if record.case_hash is None:
        return Held(("it does not say of which files of its case its configuration is: case_hash is missing",))
    if path is None:
        return Held(note=f"its configuration is not resolved again: suite {suite.name} has no such case here")
    if record.case_hash != content_of(path, common):
        return _of_others(record, path, common)
    try:
        return Held(tuple(_faults(_asked(suite, record, path, record.case_hash), record)))
    except (ProofmarkError, *UNREADABLE) as error:
        return Held((f"its configuration cannot be resolved again: {reason(error)}",))


def _of_others(record: CaseRecord, path: Path, common: Path) -> Held:
    """Hold a configuration whose files differ here to the commit that the record names, where that is known here."""
    made = record.provenance.commit.value if record.provenance else None
    if not made:
        return Held(note="its configuration is not resolved again: the files of its case are others than here")
    (then, unknown), commit = _in_commit(made, path, common), f"commit {made:.40}"
    if then == record.case_hash or then is None:
        whose = f"others than here, those of {commit}" if then else f"others, and {commit} {unknown}"
        return Held(note=f"its configuration is not resolved again: the files of its case are {whose}")
    clean = record.provenance is not None and record.provenance.clean
    named = commit if clean else f"{commit}, on which it was made with uncommitted changes,"
    return Held((f"its configuration is of files of its case that neither {named} nor this checkout has",))


@lru_cache(maxsize=1024)
def _in_commit(commit: str, path: Path, common: Path) -> tuple[str | None, str]:
    """What a case's numbers are in a commit, as `content_of` says it; None and why where nobody here knows."""
    absent = "is not in this repository"
    if not re.fullmatch("[0-9a-f]{40}([0-9a-f]{24})?", commit):
        return None, absent
    there = (["rev-parse", "--git-dir"], ["cat-file", "-e", f"{commit}^{{commit}}"])
    asked = (*there, *(["show", f"{commit}:./{each.name}"] for each in (path, common)))
    try:
        repository, known, *shown = (run_git(path.parent, each, patience=PATIENCE) for each in asked)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None, "was not read: git did not answer"
    if repository.returncode:  # its own complaint may name a folder, and this is published too
        return None, "was not read: this checkout is no repository that git reads, `git status` in it says why"
    if any(each.returncode for each in shown):
        return None, absent if known.returncode else f"has no {path.name}, or no {common.name}, in that place"
    return content_hash(*(each.stdout for each in shown)), ""


@lru_cache(maxsize=64)
def _case_file(path: Path, suite: str, profile: str, common: Path, kind: type[Parameters], content: str) -> CaseFile:
    """A case's file, read once as long as its `content` stays: many records are of one."""
    return load_case_file(path, suite, profile, common, kind)


def folder_of(suite: Suite) -> Path:
    """The folder with a suite's cases."""
    return Path(inspect.getfile(type(suite))).parent


@dataclass(frozen=True)
class _Asked:
    """What a configuration follows from; many records have the same. `overrides` are JSON."""

    suite: Suite
    path: Path
    name: str
    profile: str
    content: str
    vendor: str
    scale: str
    overrides: str

    @property
    def vendors_file(self) -> str:
        """How the path of the vendor's own overrides ends, whatever its package's folder is called."""
        return "/".join(filter(None, (CONFIGS, self.name, self.path.stem, self.scale))) + ".yaml"


def _asked(suite: Suite, record: CaseRecord, path: Path, content: str) -> _Asked:
    scale = record.variant.get("scale", "") if suite.scaled else ""
    overrides = json.dumps([vars(override) for override in record.overrides])
    return _Asked(suite, path, record.suite, record.profile, content, record.vendor, scale, overrides)


@dataclass(frozen=True)
class _Due:
    """A configuration as its case's files and its overrides give it."""

    problems: tuple[Problem, ...]
    values: Mapping[str, Any]
    hash: str
    overrides: tuple[Override, ...]


def _faults(asked: _Asked, record: CaseRecord) -> Iterator[str]:
    """Lay the overrides over the case again: those that were asked for, from which the last ones follow."""
    fewest: list[str] | None = None
    for given in range(len(record.overrides), max(-1, len(record.overrides) - SETTLED - 1), -1):
        found = list(_wrong(_due(asked, given), record))
        fewest = found if fewest is None or len(found) < len(fewest) else fewest
        if not fewest:
            return
    yield from fewest or ()


@lru_cache(maxsize=256)
def _due(asked: _Asked, given: int) -> _Due:
    """What the first `given` overrides make of the case."""
    suite, overrides = asked.suite, [Override(**each) for each in json.loads(asked.overrides)]
    kind, common = suite.case_type.parameters_type, folder_of(suite) / COMMON
    file = _case_file(asked.path, asked.name, asked.profile, common, kind, asked.content)
    settled = ("compiler", "default", f"vendor {asked.vendor}")
    default = next((each.new for each in overrides if (each.key, each.old, each.origin) == settled), None)
    layers = list(_layers(overrides[:given], asked.vendors_file, suite.closed))
    resolution = resolve(file, asked.vendor, layers, default if suite.compiles else None)
    found = suite.settle(resolution, asked.scale, file.path)
    plain = found.config.as_dict()
    values = {**plain["parameters"], **plain["configurations"]}
    return _Due(found.problems, values, found.config.hash, found.config.overrides)


def _layers(overrides: Sequence[Override], vendors_file: str, closed: bool) -> Iterator[OverrideLayer]:
    """One of the vendor's own file, and one of each other override: what an option does rests on those before it."""
    for origin, group in groupby(overrides, key=lambda override: override.origin):
        if origin.endswith(f"/{vendors_file}"):
            yield OverrideLayer(origin, {override.key: override.new for override in group}, closed, vendors_own=True)
        else:
            yield from (OverrideLayer(origin, {override.key: override.new}, closed) for override in group)


def _wrong(due: _Due, record: CaseRecord) -> Iterator[str]:
    told = {(each.key, each.what) for each in record.problems}  # of a path as it was seen from where it ran
    unsaid = (each for each in due.problems if (each.key, each.what) not in told)
    yield from (f"its configuration is not legal: {problem}" for problem in unsaid)
    for key in sorted(due.values.keys() | record.config.keys()):
        if key not in record.config or key not in due.values or due.values[key] != record.config[key]:
            said, files = (literal(values.get(key))[:80] for values in (record.config, due.values))
            yield f"config.{key} is {said}, its case's files and its overrides give {files}"
    if due.hash != record.config_hash:
        yield "config_hash is not that of its configuration"
    if due.overrides != record.overrides:
        yield "its overrides are not what its case's files make of them"
