"""The verdict on a search that still runs: never that it is valid, but at once that it is dishonest."""

from __future__ import annotations

from datetime import UTC, datetime

from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.automl.outcome.verdict import rules
from proofmark.record.parts import Verdict, VerdictKind


def judged_so_far(record: AutoMLRecord) -> Verdict:
    """Judge the record of a search that still runs, which has `as_of`."""
    assert record.as_of is not None
    honesty = VerdictKind.FAIL_HONESTY
    dishonest = [reason for rule in rules(record) if rule.kind is honesty for reason in rule.broken]
    since, seen = (
        f"{datetime.fromtimestamp(each, UTC):%Y-%m-%d %H:%M:%S} UTC" for each in (record.started, record.as_of)
    )
    goes_on = f"unfinished: the search goes on since {since}; this is how it was at {seen}, and no result to rank"
    return Verdict(kind=honesty if dishonest else VerdictKind.INSUFFICIENT, reasons=(goes_on, *dishonest))
