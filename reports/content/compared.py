"""Which suite tells of a record, and what suites have to say of several records together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proofmark.record.comparison import Comparison
from proofmark.record.envelope import CaseRecord
from proofmark.suite import Suite


def teller(record: CaseRecord, suites: Mapping[str, Suite]) -> Suite | None:
    """The record's suite; None where it is not there, or the record, by a damaged log, has another's name."""
    suite = suites.get(record.suite)
    return suite if suite and isinstance(record, suite.record_type) else None


def compared(records: Sequence[CaseRecord], suites: Mapping[str, Suite]) -> Iterator[Comparison]:
    """Each suite's comparisons of its own records."""
    for suite in suites.values():
        if own := [record for record in records if teller(record, suites) is suite]:
            yield from suite.comparisons(own)
