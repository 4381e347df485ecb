"""Whether a result directory is what a session left, and says what was measured: read, computed and judged anew."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from proofmark.errors import UsageError, harmless, reason
from proofmark.record.envelope import RECORD_FILE, CaseRecord
from proofmark.record.integrity.manifest import MANIFEST, SIGNATURE, differences, read_manifest
from proofmark.record.integrity.signature import BadSignature, signer_of
from proofmark.record.load import load_written
from proofmark.suite import Suite
from proofmark.verification.again import faults
from proofmark.verification.configuration import held
from proofmark.verification.made_up import UNREADABLE
from proofmark.verification.plain_files import records_in, strange


@dataclass(frozen=True)
class Finding:
    """Something that is not as it must be: a path within the directory, and what is wrong, in part of a sentence."""

    file: str
    what: str

    def __str__(self) -> str:
        return harmless(f"{self.file}: {self.what}")


@dataclass(frozen=True)
class Verified:
    """The outcome of a verification.

    Attributes:
        directory: the session's folder.
        findings: none where all holds.
        notes: what could not be held to anything, and why.
        records: those that can be read, by their paths within the directory.
        signer: who signed, where that was asked; None otherwise, and where the findings say why nobody did.
    """

    directory: Path
    findings: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    records: Mapping[str, CaseRecord]
    signer: str | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.findings


def verify(directory: Path, suites: Mapping[str, Suite], allowed: Path | None = None) -> Verified:
    """Hold a session's folder to its manifest, and its records to their logs. Nothing in it is run or followed.

    Args:
        directory: the folder of one session, such as `results/latest`.
        suites: by name, as `find_suites` finds them.
        allowed: OpenSSH's list of allowed signers; with it the manifest must be signed by one of them.

    Raises:
        UsageError: there is no such folder, the list can't be read, or ssh-keygen is missing.
    """
    return verify_found(_folder(directory), suites, allowed)


def verify_found(root: Path, suites: Mapping[str, Suite], allowed: Path | None = None) -> Verified:
    """As `verify`, of a folder that nobody named but that was found: what may be wrong with it is a finding.

    Raises:
        UsageError: the list can't be read, or ssh-keygen is missing.
    """
    odd = sorted(strange(root))
    unopened = [Finding(path.relative_to(root).as_posix(), "is not a regular file, so not opened") for path in odd]
    if any(path.parent == root and path.name in (MANIFEST, SIGNATURE) for path in odd):
        return Verified(root, tuple(unopened), (), {})
    signer, findings, notes = _signer(root, allowed)
    findings += [*unopened, *_against_manifest(root)]
    records = dict[str, CaseRecord]()
    for path in sorted(records_in(root)):
        name = path.relative_to(root).as_posix()
        if beside := next((each for each in odd if path.parent in each.parents), None):
            findings.append(Finding(name, f"is not read: {beside.relative_to(root)} is not a regular file"))
            continue
        try:
            records[name], written = load_written(path, suites.get)
        except (UsageError, *UNREADABLE) as error:
            findings.append(Finding(name, reason(error).removeprefix(f"{path}: ")))
        else:
            findings += [Finding(name, what) for what in _of_record(records[name], written, path.parent, root, suites)]
            if suite := suites.get(records[name].suite):
                configured = held(suite, records[name])
                findings += [Finding(name, what) for what in configured.faults]
                notes += [Finding(name, configured.note)] if configured.note else []
    if not records and not findings:
        findings.append(Finding(RECORD_FILE, "there is no record in the directory"))
    return Verified(root, tuple(dict.fromkeys(findings)), tuple(notes), records, signer)


def _signer(root: Path, allowed: Path | None) -> tuple[str | None, list[Finding], list[Finding]]:
    """Who signed, with what is wrong about that, and what was not looked at."""
    if allowed is None:
        unread = Finding(SIGNATURE, "was not looked at: --allowed-signers says whose signature counts")
        return None, [], [unread] if (root / SIGNATURE).exists() else []
    try:
        return signer_of(root, allowed), [], []
    except BadSignature as bad:
        return None, [Finding(SIGNATURE, str(bad))], []


def _of_record(
    record: CaseRecord, written: int, folder: Path, root: Path, suites: Mapping[str, Suite]
) -> Iterator[str]:
    if record.run_name != folder.relative_to(root).as_posix():
        yield f"is the record of {record.run_name}, which does not belong here"
    if "/" in record.case:
        yield "is below another run's folder: no case has such a name"
    suite = suites.get(record.suite)
    if suite is None:
        where = "here, in a checkout or as a package"
        yield f"suite '{record.suite:.80}' is not installed {where}: its figures cannot be computed again"
    else:
        yield from faults(suite, record, folder, written)


def _folder(directory: Path) -> Path:
    """The folder that a path, or a link such as `latest`, leads to."""
    try:
        found = directory.resolve(strict=True)
        mode = os.stat(found).st_mode
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(harmless(f"{directory}: {getattr(error, 'strerror', None) or error}")) from None
    if not stat.S_ISDIR(mode):
        raise UsageError(harmless(f"{directory}: not a directory; expected a session's folder, such as results/latest"))
    sessions = sorted(path.parent.name for path in found.glob(f"*/{MANIFEST}"))
    if sessions and not (found / MANIFEST).exists():
        raise UsageError(
            harmless(f"{directory}: holds sessions' folders and is not one: name them, as {directory / sessions[-1]}")
        )
    session = next((above for above in found.parents if (above / MANIFEST).exists()), None)
    if session is not None and not (found / MANIFEST).exists():
        raise only_part(directory, session)
    return found


def only_part(directory: Path, session: Path) -> UsageError:
    """What is wrong with a folder in a session's, which is named as that of the folder in it is: by a link such as
    `latest`, where one was named."""
    named = [directory, *directory.parents][len(directory.resolve().relative_to(session).parts) :][:1]
    whole = named[0] if named and named[0].resolve() == session else session
    return UsageError(harmless(f"{directory}: is part of a session's folder: name that folder, {whole}"))


def _against_manifest(root: Path) -> Iterator[Finding]:
    try:
        manifest = read_manifest(root)
        for found in differences(manifest, root):
            yield Finding(found.file, found.what)
        for line in manifest.altered:
            yield Finding(MANIFEST, f"the session itself said when it ended: {line}")
    except FileNotFoundError:
        yield Finding(MANIFEST, "is missing: the session did not finish, or an older Proofmark made it")
    except UsageError as error:
        yield Finding(MANIFEST, str(error).removeprefix(f"{root / MANIFEST}: "))
    except OSError as error:
        yield Finding(os.path.relpath(error.filename or root, root), f"cannot be read: {error.strerror}")
