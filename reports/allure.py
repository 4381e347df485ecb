"""What a case run says of itself in an Allure report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proofmark.record.envelope import CaseRecord
from reports.allure_tree import CONFIGURATION, SESSION, arrange, in_order, parameters
from reports.ci.markdown import escaped
from reports.content.view import View, with_other_name


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
    """Leave pytest's own finalizers, named `fixture::<lambda>`, out of what Allure writes, unless they failed; put each
    test where `arrange` says.

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

        @allure_commons.hookimpl(tryfirst=True)
        def report_result(self, result: Any) -> None:
            arrange(result)

    manager, plugin = allure_commons.plugin_manager, Tidy()
    manager.register(plugin)

    def undo() -> None:
        manager.unregister(plugin)

    return undo


def each_alone(alone: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put what `alone` makes of each hook that writes a file in its place.

    Raises:
        ImportError: no Allure.
    """
    import allure_commons
    from allure_commons.logger import AllureFileLogger

    hooks = vars(allure_commons.plugin_manager.hook).values()
    for impl in (impl for hook in hooks for impl in hook.get_hookimpls()):
        if isinstance(impl.plugin, AllureFileLogger):
            impl.function = alone(impl.function)


def label(suite: str, case: str, variant: Mapping[str, str], configuration: str, session: str) -> None:
    """Label the running test with its case: feature and story are suite and case, what tells runs of it apart are
    parameters, for the history, as is the hash of its `configuration`. With the token of its `session` too. The verdict
    is left out: the run may not have begun.
    """
    import allure

    dynamic: Any = allure.dynamic  # untyped upstream
    dynamic.feature(suite)
    dynamic.story(case)
    dynamic.label(CONFIGURATION, configuration)
    dynamic.label(SESSION, session)
    shown = in_order(variant)
    dynamic.tag(*(shown[name] for name in ("vendor", "precision", "profile") if name in shown))
    for name, value in shown.items():
        dynamic.parameter(name, _Bare(value))


def correct(record: CaseRecord) -> None:
    """Tell runs apart by the record: on other hosts there may be another chip than here."""
    import allure

    dynamic: Any = allure.dynamic
    for name, value in parameters(View(record).record).items():
        dynamic.parameter(name, _Bare(value))


def describe(
    record: CaseRecord, attachments: Mapping[str, Path] | None = None, charts: Mapping[str, str] | None = None
) -> None:
    """Describe the run in the running test and attach the record, SVG charts and files by name, but for empty files.

    A withheld speed is withheld in what this says too: `attachments`, which may tell of one, are left out.

    Raises:
        OSError: a file of `attachments` cannot be read.
    """
    import allure

    view = View(record)
    figures = [f"{with_other_name(figure.name, figure)}: {shown}" for figure, shown in view.listed()]
    dynamic: Any = allure.dynamic  # untyped upstream
    dynamic.tag(str(view.verdict.kind))
    dynamic.description("\n\n".join([f"**{view.verdict.kind}**", *map(escaped, (*view.verdict.reasons, *figures))]))
    attach: Any = allure.attach
    kind = allure.attachment_type
    attach(json.dumps(view.public(), indent=1, ensure_ascii=False), "run record", kind.JSON)
    for title, drawing in (charts or {}).items():
        attach(drawing, title, kind.SVG)
    for name, path in (attachments or {}).items():
        if not view.withheld and path.stat().st_size:
            attach.file(str(path), name, extension=path.suffix.lstrip(".") or "txt")
