"""Accuracy first: where a verdict withholds speed, no report shows one.

Each part of a record says which of its fields are a speed or tell of one (`SPEEDS`), a figure by its kind. A time is as
telling as a speed, and so is a moment: of a run that is withheld only its beginning is known.
"""

from __future__ import annotations

from typing import Any, TypeVar, get_args

from proofmark.record.envelope import CaseRecord
from proofmark.record.figures import Figure
from proofmark.record.parts import Part, Verdict

Shown = TypeVar("Shown", bound=Part)


def withheld(verdict: Verdict | None) -> str | None:
    """What stands in place of a speed, or None where speeds may be shown. Without a verdict they may not."""
    if verdict is None:
        return "withheld: not judged"
    return None if verdict.kind.shows_speed else f"withheld: {verdict.kind}"


def public(record: CaseRecord, verdict: Verdict | None) -> dict[str, Any]:
    """The record as plain JSON values, a text in place of each speed that is withheld."""
    values = record.model_dump(mode="json")
    reason = withheld(verdict)
    if reason is not None:
        _replace(record, values, reason)
    return values


def without_speeds(part: Shown) -> Shown:
    """A part of a record in which nobody knows a speed: null, or none of what there are several of."""
    update: dict[str, Any] = {}
    speeds = part.speeds()
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        if name in speeds:
            update[name] = None if type(None) in get_args(field.annotation) else type(value)()
        elif isinstance(value, Part):
            update[name] = without_speeds(value)
        elif isinstance(value, tuple) and any(isinstance(each, Part) for each in value):
            update[name] = tuple(without_speeds(each) if isinstance(each, Part) else each for each in value)
    if isinstance(part, Figure) and speeds:
        update["reason"] = part.reason or "withheld"  # it has no value without one
    return part.model_copy(update=update)


def _replace(part: Part, values: dict[str, Any], reason: str) -> None:
    """Put the reason in place of each speed in the part's plain values."""
    speeds = part.speeds()
    for name in type(part).model_fields:
        value = getattr(part, name)
        if name not in values:  # a part may leave out what it need not say
            continue
        if name in speeds:
            if value is not None:
                values[name] = reason
        elif isinstance(value, Part):
            _replace(value, values[name], reason)
        elif isinstance(value, tuple):
            for each, plain in zip(value, values[name], strict=True):
                if isinstance(each, Part):
                    _replace(each, plain, reason)
