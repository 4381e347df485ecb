"""Records judged again: by their own policy, which gives their own verdict, or by another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from proofmark.errors import UsageError, harmless, reason
from proofmark.record.envelope import RECORD_FILE, SCHEMA_VERSION, CaseRecord
from proofmark.record.load import load_written
from proofmark.record.parts import Verdict
from proofmark.record.policy import Policy
from proofmark.suite import Suite
from proofmark.verdict.engine import judge
from proofmark.verdict.stages import lacks_checks_alone
from proofmark.verification.made_up import UNREADABLE
from proofmark.verification.plain_files import records_in

NAMED = 8
"""Records of a folder that are named."""


@dataclass(frozen=True)
class Judged:
    """A record and a verdict on it.

    Attributes:
        path: its file.
        record: as it was read; under another policy with that in the place of its own.
        verdict: by its policy.
        own: whether that is the one that the record was made under.
        written: the schema that its file is of.
    """

    path: Path
    record: CaseRecord
    verdict: Verdict
    own: bool
    written: int = SCHEMA_VERSION

    @property
    def holds(self) -> bool:
        """Whether a record says of itself what its own policy makes of it; another policy may say otherwise."""
        return self._policy_known and (not self.own or self.verdict == self.record.verdict)

    @property
    def fewer_checks(self) -> bool:
        """Whether it is of an older schema and lacks nothing but checks that there may not have been then."""
        older = self.own and self.written < SCHEMA_VERSION and self._policy_known
        return older and lacks_checks_alone(self.verdict)

    @property
    def _policy_known(self) -> bool:
        return self.record.policy_hash in (None, self.record.policy.sha256)

    @property
    def blocks(self) -> bool:
        """Whether its verdict counts for an exit code."""
        return not self.record.policy.lets_pass(self.verdict.kind)


def judge_again(path: Path, suites: Mapping[str, Suite], policy: Policy | None = None) -> Judged:
    """Judge the record in a file, by `policy` or else by its own. A pure function of the two.

    Raises:
        UsageError: it can't be read or judged, or its suite isn't installed.
    """
    if path.is_dir():
        raise UsageError(harmless(f"{path}: is a directory; {_there(path)}"))
    try:
        return _judged(path, suites, policy)
    except UNREADABLE as error:
        raise UsageError(harmless(f"{path}: cannot be judged: {reason(error)}")) from None


def _there(folder: Path) -> str:
    """What a user who names a folder may have meant: the records in it."""
    found = sorted(map(str, islice(records_in(folder), NAMED + 1)))
    if not found:
        return f"expected a run's {RECORD_FILE}, and there is none in it"
    more = " and more" if len(found) > NAMED else ""
    return f"name the records in it: {' '.join(found[:NAMED])}{more}"


def _judged(path: Path, suites: Mapping[str, Suite], policy: Policy | None) -> Judged:
    record, written = load_written(path, suites.get)
    suite = suites.get(record.suite)
    if suite is None:
        raise UsageError(harmless(f"{path}: suite '{record.suite:.80}' is not installed: nobody here can judge it"))
    if policy is not None:
        record = record.model_copy(update={"policy": policy, "policy_hash": policy.sha256})
    return Judged(path, record, judge(record, suite.stages(record)), own=policy is None, written=written)
