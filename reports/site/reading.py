"""A session's records on their way into the site: verified, written as pages, told to the index."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proofmark.errors import ProofmarkError, harmless, reason
from proofmark.plain_json import LARGEST, is_regular_file
from proofmark.record.envelope import CaseRecord
from proofmark.record.load import load_record
from proofmark.record.parts import VerdictKind
from proofmark.record.policy import Policy, default_policy
from proofmark.suite import Suite
from proofmark.verdict.engine import judge
from proofmark.verdict.ranking import obstacles
from proofmark.verification.made_up import MADE_UP
from proofmark.verification.verify import verify_found
from reports.content.view import View
from reports.site.discover import Session
from reports.site.entry import entry_of, values_of
from reports.site.files import as_json
from reports.site.index import Read, key_of
from reports.site.pages import write_run


@dataclass(frozen=True)
class Seen:
    """What verification says of a session's folder.

    Attributes:
        findings: what is wrong.
        records: those that it read, by relative path.
        unheld: why a record's configuration was held to nothing, by relative path.
        signer: who signed it; None where nobody was asked for.
    """

    findings: Sequence[str]
    records: Mapping[str, CaseRecord]
    unheld: Mapping[str, str] = field(default_factory=dict)
    signer: str | None = None


Look = Callable[[Path, Mapping[str, Suite]], Seen]


def held(folder: Path, suites: Mapping[str, Suite], allowed: Path | None = None) -> Seen:
    """Hold a session's folder to its manifest, its logs and, with a list of signers, to its signature.

    Raises:
        ProofmarkError: the list can't be read, or ssh-keygen is missing.
    """
    verified = verify_found(folder, suites, allowed)
    unheld = {note.file: harmless(note.what) for note in verified.notes if note.file in verified.records}
    return Seen([str(finding) for finding in verified.findings], verified.records, unheld, verified.signer)


@dataclass(frozen=True)
class Reader:
    """What reading records needs. `runs` is the folder for their pages, `assets` where their styles lie in the site.

    All are ranked by one `policy`, whatever they were judged by.
    """

    suites: Mapping[str, Suite]
    look: Look
    runs: Path
    assets: str
    policy: Policy = field(default_factory=default_policy)

    def read(self, session: Session) -> list[Read]:
        """Read a session's records and write their pages; of each that can't be read a problem in a line.

        Nothing of a session counts as verified where anything in its folder is not as it was left.

        Raises:
            OSError: a page can't be written, or what verifies fails elsewhere than in the session's folder.
            ProofmarkError: nothing can be verified here.
        """
        try:
            seen = self.look(session.folder, self.suites)
        except (OSError, *MADE_UP) as error:
            if isinstance(error, OSError) and not _in(session.folder, error):
                raise
            message = harmless(f"{session.folder}: cannot be verified: {reason(error)}")
            return [Read(key_of(path), session.state, problem=message) for path in session.records]
        return list(self._each(session, seen))

    def _each(self, session: Session, seen: Seen) -> Iterator[Read]:
        for path in session.records:
            try:
                yield self._one(path, session, seen)
            except ProofmarkError as error:
                yield Read(key_of(path), session.state, problem=harmless(str(error)))
            except MADE_UP as error:
                yield Read(key_of(path), session.state, problem=harmless(f"{path}: cannot be shown: {reason(error)}"))

    def _one(self, path: Path, session: Session, seen: Seen) -> Read:
        content = _content(path)
        name = path.relative_to(session.folder).as_posix()
        record = seen.records.get(name) or load_record(path, self.suites.get)
        view = View(record)
        unheld = [seen.unheld[name]] if name in seen.unheld else []
        entry = entry_of(content, view, seen.findings, [*unheld, *self._by_the_policy(record)], seen.signer)
        write_run(self.runs, entry, view, self.suites, self.assets)
        return Read(key_of(path), session.state, entry, as_json(values_of(view)))

    def _by_the_policy(self, record: CaseRecord) -> Iterator[str]:
        """What keeps a run from being ranked that passed, by a policy of its own maybe."""
        policy, suite = self.policy, self.suites.get(record.suite)
        if suite is not None and record.policy != policy:
            record = record.model_copy(update={"policy": policy, "policy_hash": policy.sha256})
            verdict = judge(record, suite.stages(record))
            if verdict.kind != VerdictKind.PASS:
                yield "; ".join([f"{verdict.kind} by policy {policy.title}", *verdict.reasons[:1]])
        yield from obstacles(record, policy)


def _in(folder: Path, error: OSError) -> bool:
    """Whether a file there, or the folder itself, is what could not be read. Of one that was opened no name is told,
    where a disk fails or is gone."""
    name = error.filename
    if name is None:
        return error.errno in (errno.EIO, errno.ESTALE)
    return isinstance(name, str | bytes | Path) and Path(os.fsdecode(name)).is_relative_to(folder)


def _content(path: Path) -> str:
    """SHA-256 of a file.

    Raises:
        ProofmarkError: it can't be read, is not a regular file, or too large for a record.
    """
    try:
        if not is_regular_file(path):
            raise ProofmarkError(f"{path}: is not a regular file, so not opened")
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise ProofmarkError(f"{path}: {error.strerror}") from None
    if len(content) > LARGEST:
        raise ProofmarkError(f"{path}: not a run record: it is larger than {LARGEST >> 20} MiB")
    return hashlib.sha256(content).hexdigest()
