"""Which runs leave something behind to look at: those that failed."""

from __future__ import annotations

from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import VerdictKind

NO_FAILURE = frozenset({VerdictKind.PASS, VerdictKind.UNSUPPORTED, VerdictKind.AMBIGUOUS, VerdictKind.INSUFFICIENT})
"""Verdicts of which nobody needs the artifacts: the next run makes them again."""


def failed(record: CaseRecord) -> bool:
    """Whether somebody will want to know why."""
    return record.verdict is not None and record.verdict.kind not in NO_FAILURE
