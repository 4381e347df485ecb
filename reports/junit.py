"""What a case run says of itself in JUnit XML: plain names and values."""

from __future__ import annotations

from proofmark.inference.record import RunRecord
from proofmark.record.parts import Identity
from reports.view import CaseView, Figure
from reports.watch import honesty


def properties(record: RunRecord) -> list[tuple[str, str]]:
    """Names and values, the same names for every record.

    `whole`, `core` and `loader` are items per second, energies joules, `mfu` and accuracies are shares as in the
    record. A figure that is null is "null: why", one that is withheld "withheld: verdict".
    """
    view = CaseView(record)
    record = view.record
    side, accuracy = view.ranked, record.accuracy
    return [
        ("verdict", str(view.verdict.kind)),
        ("reasons", "; ".join(view.verdict.reasons)),
        ("suite", record.suite),
        ("case", record.case),
        ("profile", record.profile),
        ("vendor", record.vendor),
        ("chip", record.chip.name),
        ("compiler", record.compiler or "none"),
        ("precision", record.precision),
        ("item", record.item),
        ("whole", _plain(view.speed(side, "whole"))),
        ("core", _plain(view.speed(side, "core"))),
        ("loader", _plain(view.loader(side))),
        ("bound_by", _plain(view.bound_by(side))),
        ("mfu", _plain(view.mfu)),
        ("energy_joules", _plain(view.energy)),
        ("energy_per_item", _plain(view.energy_per_item)),
        ("energy_method", _plain(view.energy_method)),
        ("honesty", str(honesty(view))),
        ("metric", accuracy.metric),
        ("target", f"{accuracy.target:g}"),
        ("accuracy_framework_fp32", _plain(view.score("framework", accuracy.framework_fp32))),
        ("accuracy_framework", _plain(view.score("framework", accuracy.framework))),
        ("accuracy_engine", _plain(view.score("engine", accuracy.engine))),
        ("config_hash", record.config_hash),
        ("dataset_sha256", _sha256(record.dataset)),
        ("weights_sha256", _sha256(record.weights)),
    ]


def _plain(figure: Figure) -> str:
    if figure.value is not None:
        return f"{figure.value:.6g}"
    return f"null: {figure.reason}" if figure.reason else figure.text


def _sha256(identity: Identity | None) -> str:
    return identity.sha256 if identity else "null: not identified"
