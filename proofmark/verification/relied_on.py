"""A record that a later run relies on: it verifies with its session, and it is a PASS."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from proofmark.errors import UsageError, harmless
from proofmark.record.envelope import CaseRecord
from proofmark.record.integrity.manifest import MANIFEST, read_manifest
from proofmark.record.parts import VerdictKind
from proofmark.record.policy import Policy
from proofmark.suite import Suite
from proofmark.verdict.engine import judge
from proofmark.verification.verify import Verified, verify


@dataclass(frozen=True)
class Passed:
    """A record that passed, what its session's folder was called, and the SHA-256 of its file."""

    record: CaseRecord
    session: str
    sha256: str


def passed(path: Path, suites: Mapping[str, Suite], policy: Policy) -> Passed:
    """The record in a file, if its whole session verifies and it passes by another policy too.

    Raises:
        UsageError: there is no such file, or it is not what it says, or no PASS; one line.
    """
    found = _plain(path)
    root = next((folder for folder in found.parents if (folder / MANIFEST).is_file()), None)
    if root is None:
        raise UsageError(f"{path}: is not in a session's folder: expected a {MANIFEST} in one above it")
    verified = verify(root, suites)
    name = found.relative_to(root).as_posix()
    if (wrong := _wrong(verified, name, suites, policy)) is not None:
        raise UsageError(harmless(f"{path}: {wrong}"))
    manifest = read_manifest(root)
    return Passed(verified.records[name], manifest.session, str(manifest.files[name].sha256))


def _plain(path: Path) -> Path:
    """Where a file is. Links above it, such as `latest`, are followed; it is none itself.

    Raises:
        UsageError: it is not a regular file.
    """
    try:
        mode, found = path.lstat().st_mode, path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(harmless(f"{path}: {getattr(error, 'strerror', None) or error}")) from None
    if not stat.S_ISREG(mode):
        raise UsageError(harmless(f"{path}: is not a regular file, so not opened; expected a run's record.json"))
    return found


def _wrong(verified: Verified, name: str, suites: Mapping[str, Suite], policy: Policy) -> str | None:
    """Why nobody can rely on a record of a session; None if one can."""
    if verified.findings:
        return f"its session does not verify: {verified.findings[0]}"
    record = verified.records.get(name)
    if record is None:
        return "is not the record of a run; expected a run's record.json"
    for note in verified.notes:
        if note.file == name:
            return note.what
    kind = record.verdict.kind if record.verdict else "not judged"
    if kind != VerdictKind.PASS:
        return f"is {kind}; expected a PASS"
    again = record.model_copy(update={"policy": policy, "policy_hash": policy.sha256})
    kind = judge(again, suites[record.suite].stages(again)).kind
    return None if kind == VerdictKind.PASS else f"is {kind} by policy {policy.title}; expected a PASS"
