"""What the site's tables know of a run. Made from its record once, and kept in the index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from proofmark.record.envelope import CaseRecord
from proofmark.record.figures import Figure, FigureKind
from reports.content import variant
from reports.content.view import Shown, View
from reports.html import tone

Value = float | int | str | None


class Cell(BaseModel):
    """A headline figure of a run, as it may be shown. `value` is null where it is missing or withheld."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    label: str
    unit: str
    kind: FigureKind
    less_is_better: bool
    value: Value
    text: str
    reason: str | None


class Entry(BaseModel):
    """A run as tables show it.

    `content`: SHA-256 of the record's file, its first 16 digits. `id`: the same, where nothing is wrong with its
    folder and nobody's signature was asked for; else it depends on what is wrong and on who signed, too: records that
    are equal have pages of their own where not all of them hold, or where others signed them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    content: str
    suite: str
    case: str
    vendor: str
    chip: str
    units: int
    variant: dict[str, str]
    precision: str
    profile: str
    batch: str
    started: float
    commit: str | None
    config_hash: str
    series: str
    verdict: str
    sign: str
    tone: str
    reasons: tuple[str, ...]
    findings: tuple[str, ...]
    obstacles: tuple[str, ...] = ()
    """What keeps it out of the ranking though nothing is wrong with it."""

    signer: str | None = None
    """Who signed for it; None where nobody's signature was asked for, or it has none that counts."""

    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """Suite and case: what a league table is of."""
        return f"{self.suite}/{self.case}"

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why it can't be ranked beside what its record itself says."""
        return self.findings + self.obstacles

    @property
    def contender(self) -> tuple[object, ...]:
        """Of whom a league table has one ranked run. What one signer submits takes no other's place."""
        variant_items = tuple(self.variant.items())
        return self.vendor, self.chip, self.units, variant_items, self.precision, self.profile, self.signer


LONGEST = 300
"""Characters of a reason that a table keeps; the run's own page has it whole."""

DIGITS = 16
"""Of the SHA-256 that a run's pages are called by."""


def entry_of(
    content: str,
    view: View[CaseRecord],
    findings: Sequence[str],
    obstacles: Sequence[str] = (),
    signer: str | None = None,
) -> Entry:
    """What tables need of a record, with the findings of its verification, and what else keeps it from being ranked.

    Args:
        content: SHA-256 of the record's file.
        view: of the record.
        findings: what is wrong with its folder.
        obstacles: what else keeps it from being ranked.
        signer: who signed its folder.
    """
    record = view.record
    shown_findings = tuple(finding[:LONGEST] for finding in findings[:3])
    further = [*shown_findings, *([f"signed by {signer}"] if signer else [])]
    commit = record.provenance.commit.value if record.provenance else None
    return Entry(
        id=(hashlib.sha256("\0".join([content, *further]).encode()).hexdigest() if further else content)[:DIGITS],
        content=content[:DIGITS],
        suite=record.suite,
        case=record.case,
        vendor=record.vendor,
        chip=record.chip.name,
        units=record.chip.units,
        variant=record.variant,
        precision=record.precision,
        profile=record.profile,
        batch=variant.batch(record),
        started=record.started,
        commit=commit,
        config_hash=record.config_hash,
        series=_series(record, signer),
        verdict=str(view.verdict.kind),
        sign=view.verdict.kind.sign,
        tone=tone(view.verdict.kind),
        reasons=tuple(reason[:LONGEST] for reason in view.verdict.reasons[:3]),
        findings=shown_findings,
        obstacles=tuple(obstacle[:LONGEST] for obstacle in obstacles[:3]),
        signer=signer,
        cells=tuple(_cell(figure, shown) for figure, shown in view.headlines()),
    )


def values_of(view: View[CaseRecord]) -> dict[str, Value]:
    """All figures of a record by key, for exports: null where one is missing or withheld."""
    return {figure.key: shown.value for figure, shown in view.listed()}


def _cell(figure: Figure, shown: Shown) -> Cell:
    return Cell(
        key=figure.key,
        label=figure.label,
        unit=figure.unit,
        kind=figure.kind,
        less_is_better=figure.lower_is_better or figure.kind is FigureKind.COST,
        value=shown.value,
        text=shown.text,
        reason=shown.reason[:LONGEST] if shown.reason else None,
    )


def _series(record: CaseRecord, signer: str | None) -> str:
    """The same for runs that belong to one trend: of one contender, on like machines."""
    group_key = [record.suite, record.case, variant.variant(record), variant.machine(record)]
    group_key += [signer] if signer else []
    return hashlib.sha256(json.dumps(group_key, sort_keys=True).encode()).hexdigest()[:12]
