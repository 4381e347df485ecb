"""What a result was made with, beside versions of packages: the suite's commit, the vendor's package, its driver."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from proofmark.errors import Problem, UsageError, named
from proofmark.folders import DEEPEST, too_deep
from proofmark.git import run_git
from proofmark.git_content import is_read_by_git, unlike
from proofmark.record.provenance import Known, Provenance
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor.contract import Vendor
from proofmark.vendor.environment import installed
from proofmark.vendor.hardware.chips import describe_chip
from proofmark.vendor.hardware.machine import describe_host, installed_versions
from proofmark.vendor.registry import FoundVendor

SUITE = Path(__file__).resolve().parents[3]

PATIENCE = 60.0
"""Seconds that git may take."""

KERNELS = ("/proc/", "/sys/", "/dev/")

MOST_FILES, MOST_BYTES = 10_000, 1 << 30
"""Of a vendor's package that is hashed."""


def provenance_of(found: FoundVendor) -> Provenance:
    """The provenance of this session's suite and vendor. It does not change while a session runs: it is looked at
    once."""
    commit, clean = commit_of(SUITE)
    return Provenance(
        commit=commit,
        clean=clean,
        vendor_version=_vendor_version(found),
        vendor_sha256=content_of(found.directory),
    )


def run_facts(
    found: FoundVendor,
    config: EffectiveConfig,
    precision: str,
    compiler: str | None,
    packages: Iterable[str],
) -> dict[str, Any]:
    """What the event that a run begins with says whatever the suite: its configuration, versions, machine and chip.

    Args:
        precision: at which it is run.
        compiler: None where nothing is compiled.
        packages: whose versions matter.

    Raises:
        ConfigurationError: a file of the vendor's is wrong.
    """
    vendor = found.vendor
    case = f"{config.suite}/{config.case}"
    declared = {"environment": dict(config.host.environment), "requirements": installed(found.directory, case)}
    isolation = {"introduction": found.isolation} if found.isolation else {}
    chip = describe_chip(vendor.chip(), vendor.chip_units(), precision, found.chips_file)
    return {
        "config": config.as_dict(),
        "precision": precision,
        "versions": installed_versions(packages),
        "provenance": provenance_of(found).model_copy(update=declared).model_dump(),
        "isolation": {name: each.model_dump(mode="json") for name, each in isolation.items()},
        "host": describe_host(device_software(vendor)).model_dump(),
        "chip": chip.model_dump(),
        "expected_unsupported": found.expects_unsupported(case, compiler, precision),
    }


def vendor_package(found: FoundVendor) -> dict[str, Known]:
    """The part of it that a host knows as well: which vendor's package it has."""
    return {"vendor_version": _vendor_version(found), "vendor_sha256": content_of(found.directory)}


def device_software(vendor: Vendor) -> dict[str, Known]:
    """Driver, runtime and firmware in the vendor's words; what it raises is the reason why there are none."""
    names = ("driver", "runtime", "firmware")
    try:
        software = vendor.software()
        values = {name: getattr(software, name) for name in names}
        reason = software.reason
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a vendor may raise anything)
        values, reason = dict.fromkeys(names), f"software() failed: {named(error)}"
    return {
        name: Known(value=str(value)) if value is not None else Known(reason=reason) for name, value in values.items()
    }


@cache
def commit_of(root: Path) -> tuple[Known, bool | None]:
    """The commit that a tree's files are of, and whether they are unchanged."""
    ask = partial(run_git, root, patience=PATIENCE)
    try:
        tracked = ask(["ls-files", "--error-unmatch", "proofmark/__init__.py"])
        if tracked.returncode:
            return Known(reason=_said(tracked.stderr, "not under git's control")), None
        commit, status = ask(["rev-parse", "HEAD"]), ask(["status", "--porcelain"])
    except FileNotFoundError:
        return Known(reason="there is no git on this machine"), None
    except (OSError, subprocess.TimeoutExpired) as error:
        return Known(reason=f"git did not answer: {error}"), None
    if commit.returncode or status.returncode:
        return Known(reason=_said(commit.stderr or status.stderr)), None
    known = commit.stdout.decode("ascii").strip()
    try:
        return Known(value=known), not (status.stdout.strip() or unlike(root, known))
    except (UsageError, OSError) as error:
        return Known(reason=f"git did not answer: {error}"), None


def _said(answer: bytes, otherwise: str = "git failed") -> str:
    """The first line of what git complains of."""
    return next(iter(answer.decode("utf-8", "replace").strip().splitlines()), otherwise)


def _vendor_version(found: FoundVendor) -> Known:
    if found.distribution is None:
        return Known(reason="not an installed package: the suite's commit and the hash of its content say which it is")
    try:
        return Known(value=f"{found.distribution} {version(found.distribution)}")
    except PackageNotFoundError:
        return Known(reason=f"{found.distribution} does not tell its version")


@cache
def content_of(directory: Path) -> Known:
    """SHA-256 over all that tells a package's files apart, in order: names, whether they can be executed, contents, and
    where links lead, if only to nothing. What Python itself compiled is none of them."""
    digest, count, size = hashlib.sha256(), 0, 0
    try:
        for path in sorted(path for path in directory.rglob("*") if path.is_symlink()):
            end = os.fsencode(os.readlink(path))
            digest.update(_entry(b"link", path, directory, len(end)) + end)
        for path in sorted(path for path in directory.rglob("*") if path.is_file() and not _is_compiled(path)):
            count, found = count + 1, path.stat()
            kind = b"program" if found.st_mode & stat.S_IXUSR else b"file"
            digest.update(_entry(kind, path, directory, found.st_size))
            with path.open("rb") as stream:
                while (chunk := stream.read(1 << 20)) and size <= MOST_BYTES:  # it may be longer than it says
                    digest.update(chunk)
                    size += len(chunk)
            if count > MOST_FILES or size > MOST_BYTES:
                return Known(reason=f"{directory} has more than {MOST_FILES} files or {MOST_BYTES >> 30} GiB")
    except OSError as error:
        return Known(reason=f"{directory} cannot be read: {error.strerror}")
    return Known(value=digest.hexdigest())


def _entry(kind: bytes, path: Path, directory: Path, size: int) -> bytes:
    """What comes before a file's content in the digest: with lengths, so that no two packages read alike."""
    name = os.fsencode(path.relative_to(directory))
    return b"%b %d %d\0%b" % (kind, len(name), size, name)


def foreign_files(directory: Path) -> list[Problem]:
    """What has no place in a package.

    Links to what is no file of anybody's but the kernel's: it has no content that could be hashed. And what git reads,
    which decides for the whole repository what counts as a difference; a submodule, which has its own, is not entered.
    Nor have folders within folders without end: whoever walks through all of them falls over.
    """
    if deep := too_deep(directory):
        what = f"has more than {DEEPEST} folders in one another: nobody walks through those"
        return [Problem(str(deep), "", what)]
    return [*_kernels(directory), *_gits(directory)]


def _kernels(directory: Path) -> list[Problem]:
    paths = (Path(folder, name) for folder, *entries in os.walk(directory) for name in (*entries[0], *entries[1]))
    links = (path for path in paths if os.path.islink(path))  # of a path that is too long it is False
    led = [(path, os.path.realpath(path)) for path in links]
    what = "leads to {}, which is the kernel's: expected files of the package"
    return [Problem(str(path), "", what.format(end)) for path, end in sorted(led) if end.startswith(KERNELS)]


def _gits(directory: Path) -> list[Problem]:
    found = []
    for folder, folders, files in os.walk(directory):
        if ".git" in (*folders, *files):
            folders.clear()
        else:
            found += [Path(folder, name) for name in (*folders, *files) if is_read_by_git(name)]
    what = "git reads it to decide which files differ, and a vendor's package has no say in that: remove it"
    return [Problem(str(path), "", what) for path in sorted(found)]


def _is_compiled(path: Path) -> bool:
    """Whether a file is compiled Python as it is kept by itself; of a vendor's package it is never run. One with the
    source's hash in place of its time (PEP 552) counts: it was made to be run whatever the source says."""
    if path.parent.name != "__pycache__" or path.suffix != ".pyc":
        return False
    with path.open("rb") as stream:
        head = stream.read(16)
    return len(head) == 16 and head[4:8] == bytes(4)  # no flag is set
