"""Which runs leave something behind to look at: those that failed."""

from __future__ import annotations

from proofmark.record.envelope import CaseRecord


def failed(record: CaseRecord) -> bool:
    """Whether somebody will want to know why. What any other run made, the next one makes again."""
    return record.verdict is not None and record.verdict.kind.failed
