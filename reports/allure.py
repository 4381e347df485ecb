"""What a case run says of itself in an Allure report. Called inside the running test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.record import RunRecord
from reports.plots import plots
from reports.view import CaseView
from reports.watch import honesty, troubles


def describe(record: RunRecord, attachments: Mapping[str, Path] | None = None) -> None:
    """Label the running test with its case and attach the record, the plots and files by name.

    Does nothing without --alluredir or without Allure. A withheld speed is withheld in what this
    attaches too; `attachments` are attached as they are.

    Raises:
        OSError: a file of `attachments` cannot be read.
    """
    try:
        import allure
        import allure_commons
    except ImportError:
        return
    if not allure_commons.plugin_manager.hook.attach_data.get_hookimpls():
        return
    view = CaseView(record)
    _label(view)
    attach: Any = allure.attach  # untyped upstream
    kind = allure.attachment_type
    attach(json.dumps(view.public(), indent=1, ensure_ascii=False), "run record", kind.JSON)
    for title, drawing in plots(view).items():
        attach(drawing, title, kind.SVG)
    for name, path in (attachments or {}).items():
        attach.file(str(path), name, extension=path.suffix.lstrip(".") or "txt")


def _label(view: CaseView) -> None:
    """Feature and story are suite and case; what else tells runs apart is a parameter, for the history."""
    import allure

    record = view.record
    dynamic: Any = allure.dynamic  # untyped upstream
    dynamic.feature(record.suite)
    dynamic.story(record.case)
    dynamic.tag(str(view.verdict.kind), record.vendor, record.precision, record.profile)
    for name, value in (
        ("vendor", record.vendor),
        ("chip", record.chip.name),
        ("compiler", view.compiler),
        ("precision", record.precision),
        ("profile", record.profile),
    ):
        dynamic.parameter(name, value)
    dynamic.description("\n\n".join([f"**{view.verdict.kind}**", *view.verdict.reasons, *_figures(view)]))


def _figures(view: CaseView) -> list[str]:
    side, accuracy = view.ranked, view.record.accuracy
    return [
        f"accuracy ({accuracy.metric}, target {accuracy.target:g}): {view.ranked_score}",
        f"whole: {view.speed(side, 'whole')}",
        f"core: {view.speed(side, 'core')}",
        f"loader: {view.loader(side)}, bound by: {view.bound_by(side)}",
        f"MFU: {view.mfu}",
        f"energy: {view.energy_per_item}",
        f"honesty: {honesty(view)}",
        *(f"monitor: {trouble}" for trouble in troubles(view)),
    ]
