"""What a case run says of itself in JUnit XML: plain names and values."""

from __future__ import annotations

from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Identity
from reports.content.view import View


def properties(record: CaseRecord) -> list[tuple[str, str]]:
    """Names and values: the record's envelope, and every figure by its key.

    A figure is its bare value in the unit that the record has it in. One that is null is "null: why", one that is
    withheld "withheld: verdict".
    """
    view = View(record)
    record = view.record
    return [
        ("verdict", str(view.verdict.kind)),
        ("reasons", "; ".join(view.verdict.reasons)),
        ("suite", record.suite),
        ("case", record.case),
        *record.variant.items(),
        ("profile", record.profile),
        ("vendor", record.vendor),
        ("chip", record.chip.name),
        ("precision", record.precision),
        ("item", record.item),
        *((key, view.shown(key).plain) for key in view.figures),
        ("config_hash", record.config_hash),
        ("dataset_sha256", _sha256(record.dataset)),
        ("weights_sha256", _sha256(record.weights)),
    ]


def _sha256(identity: Identity | None) -> str:
    return identity.sha256 if identity else "null: not identified"
