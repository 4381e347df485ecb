"""The suites of this repository, for tests of what walks over their records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proofmark.record.envelope import CaseRecord
from proofmark.suite import find_suites
from reports.html import render

SUITES = find_suites(Path(__file__).parents[1] / "suites")


def page_of(records: Sequence[CaseRecord]) -> str:
    """The HTML report on records, with all that their suites show of them."""
    return render(records, SUITES)
