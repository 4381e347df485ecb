"""What a case run says of itself in an Allure report."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.record import CaseRecord, RunRecord
from harness.training.record import TrainingRecord
from reports.plots import plots
from reports.training import TrainingView
from reports.training_plots import training_plots
from reports.view import CaseView
from reports.watch import honesty, troubles


class _Bare:
    """Allure shows the `repr` of a parameter: a text would come in quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def listens() -> bool:
    """Whether an Allure report is being made: --alluredir is given, and Allure is there."""
    try:
        import allure_commons
    except ImportError:
        return False
    return bool(allure_commons.plugin_manager.hook.attach_data.get_hookimpls())


def tidy() -> Callable[[], None]:
    """Leave pytest's own finalizers, named `fixture::<lambda>`, out of what Allure writes, unless they failed.

    Returns what undoes it.

    Raises:
        ImportError: no Allure.
    """
    import allure_commons

    class Tidy:
        @allure_commons.hookimpl(tryfirst=True)
        def report_container(self, container: Any) -> None:
            # the finalizer that ends a fixture has no status yet when its container is written
            failed = ("failed", "broken")
            container.afters = [
                after for after in container.afters if after.status in failed or not after.name.endswith("::<lambda>")
            ]
            for after in container.afters:
                after.name = after.name.partition("::")[0]

    manager, plugin = allure_commons.plugin_manager, Tidy()
    manager.register(plugin)

    def undo() -> None:
        manager.unregister(plugin)

    return undo


def label(record: CaseRecord) -> None:
    """Label the running test with its case: feature and story are suite and case, what else tells runs apart is a
    parameter, for the history. The verdict is left out: the run may not be over.
    """
    import allure

    dynamic: Any = allure.dynamic  # untyped upstream
    record = view_of(record).record
    dynamic.feature(record.suite)
    dynamic.story(record.case)
    dynamic.tag(record.vendor, record.precision, record.profile)
    for name, value in (
        ("vendor", record.vendor),
        ("chip", record.chip.name),
        _variant(record),
        ("precision", record.precision),
        ("profile", record.profile),
    ):
        dynamic.parameter(name, _Bare(value))


def _variant(record: CaseRecord) -> tuple[str, str]:
    """What beside vendor, chip and precision makes another run of the same case."""
    if isinstance(record, TrainingRecord):
        return "scale", record.scale
    assert isinstance(record, RunRecord)
    return "compiler", record.compiler or "none"


def view_of(record: CaseRecord) -> CaseView | TrainingView:
    """The record as reports show it."""
    if isinstance(record, TrainingRecord):
        return TrainingView(record)
    assert isinstance(record, RunRecord)
    return CaseView(record)


def describe(record: CaseRecord, attachments: Mapping[str, Path] | None = None) -> None:
    """Describe the run in the running test and attach the record, the plots and files by name, but for empty files.

    A withheld speed is withheld in what this attaches too; `attachments` are attached as they are.

    Raises:
        OSError: a file of `attachments` cannot be read.
    """
    import allure

    view = view_of(record)
    if isinstance(view, TrainingView):
        figures, drawings = [f"{name}: {value}" for name, value in view.fields()], training_plots(view)
    else:
        figures, drawings = _figures(view), plots(view)
    dynamic: Any = allure.dynamic  # untyped upstream
    dynamic.tag(str(view.verdict.kind))
    told = (html.escape(line, quote=False) for line in (*view.verdict.reasons, *figures))  # Markdown lets HTML through
    dynamic.description("\n\n".join([f"**{view.verdict.kind}**", *told]))
    attach: Any = allure.attach
    kind = allure.attachment_type
    attach(json.dumps(view.public(), indent=1, ensure_ascii=False), "run record", kind.JSON)
    for title, drawing in drawings.items():
        attach(drawing, title, kind.SVG)
    for name, path in (attachments or {}).items():
        if path.stat().st_size:
            attach.file(str(path), name, extension=path.suffix.lstrip(".") or "txt")


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
