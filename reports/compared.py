"""What suites have to say of several records together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proofmark.record.comparison import Comparison
from proofmark.record.envelope import CaseRecord
from proofmark.suite import Suite


def compared(records: Sequence[CaseRecord], suites: Mapping[str, Suite]) -> Iterator[Comparison]:
    """Each suite's comparisons of its own records."""
    for name, suite in suites.items():
        own = [record for record in records if record.suite == name]
        if own:
            yield from suite.comparisons(own)
