"""What watched the run: the checks of honesty, and the monitor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proofmark.record.parts import Check
from reports import text
from reports.view import CaseView, Figure, missing


def honesty(view: CaseView) -> Figure:
    """How many checks passed, and the names of those that did not."""
    checks = view.record.checks
    if not checks:
        return missing(
            "no check was run: " + (view.why_not("engine") if view.record.engine is None else "none recorded")
        )
    return counted(checks)


def counted(checks: Sequence[Check]) -> Figure:
    """How many of some checks passed, and the names of those that did not."""
    failed = [check.name for check in checks if not check.passed]
    passed = len(checks) - len(failed)
    told = f"{passed} of {len(checks)} checks passed"
    return Figure(f"{told}; failed: {', '.join(dict.fromkeys(failed))}" if failed else told, passed)


def check_figure(check: Check) -> Figure:
    """A check's figure, to three digits."""
    if check.figure is None:
        return missing("not a finite number")
    return Figure(text.brief(check.figure), check.figure)


def energy(view: CaseView) -> str:
    """Energy in the timed window and per item in one line."""
    if view.energy.value is None:
        return str(view.energy)
    return f"{view.energy.text}, {view.energy_per_item}"


def troubles(view: CaseView) -> list[str]:
    """What the monitor found wrong, with the devices or with itself, in sentences."""
    return list(_troubles(view))


def _troubles(view: CaseView) -> Iterator[str]:
    seen = view.record.monitoring
    if seen is None:
        return
    if seen.throttled:
        yield f"the device was throttled in the timed window: {', '.join(seen.throttled)}"
    if seen.foreign_processes:
        processes = ", ".join(map(str, seen.foreign_processes))
        yield f"other processes were on the device in the timed window: {processes}"
    for failure in seen.failures:
        yield f"the monitor failed: {failure}"
    if not seen.samples:
        yield "the monitor took no sample"
