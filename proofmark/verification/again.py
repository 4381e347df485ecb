"""A run's record collected once more from its folder alone, and how it differs from what the record says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from proofmark import __version__
from proofmark.errors import reason
from proofmark.literal import literal
from proofmark.record.envelope import SCHEMA_VERSION, CaseRecord
from proofmark.record.events.log import LOG_FILE
from proofmark.record.integrity.chain import changes
from proofmark.record.parts import Part
from proofmark.suite import Suite
from proofmark.vendor.hardware.provenance import SUITE, commit_of
from proofmark.verdict.engine import judge
from proofmark.verdict.stages import lacks_checks_alone
from proofmark.verification.made_up import UNREADABLE

LARGEST = 1 << 30
"""Bytes of a run's logs that are held in memory, with all their events, where they are read anew."""

NAMED = 8
"""Differences that are named; of more, how many there are."""

FEWER_CHECKS = "fewer checks than there are now, of schema {written}; only a new run can pass those"
"""Why the verdict of an older record is not what today's checks give."""

LATER = ("kept", "compared")
"""Fields that say what the session did after it had collected the record: no log has them."""


def faults(suite: Suite, record: CaseRecord, folder: Path, written: int = SCHEMA_VERSION) -> Iterator[str]:
    """What in a record does not follow from its run's logs, each in part of a sentence.

    `written` is the schema that its file is of.
    """
    try:
        yield from _faults(suite, record, folder, written)
    except UNREADABLE as error:
        yield f"it cannot be held to its logs: {reason(error)}"


def _faults(suite: Suite, record: CaseRecord, folder: Path, written: int) -> Iterator[str]:
    too_large = _too_large(suite, folder)
    made = too_large or _made(suite, record, folder)
    if isinstance(made, CaseRecord):
        record = _filled(record, made)
    if record.log is not None and too_large is None:
        if isinstance(made, CaseRecord) and made.log == record.log:
            changed: Sequence[str] = made.changed
        else:
            changed = changes(folder / LOG_FILE, record.log)
        yield from (f"its event log is not the one that was sealed: {what}" for what in changed)
    yield from [made] if isinstance(made, str) else _differing(suite, record, made)
    if compared := record.compared:
        for ratio in compared.ratios:
            if (follows := ratio.outcome_at(compared.width, compared.loadings_needed)) != ratio.outcome:
                yield f"compared.{ratio.metric} is {ratio.outcome}, its bounds give {follows}"
            if compared.way != "recorded" and (unlike := ratio.unlike_its_pairs()):
                yield f"compared.{ratio.metric} {unlike}"
    if record.verdict != (due := judge(record, suite.stages(record))):
        said = record.verdict.kind if record.verdict else "none"
        if written < SCHEMA_VERSION and lacks_checks_alone(due):
            yield f"its verdict is {said}, by {FEWER_CHECKS.format(written=written)}"
        else:
            yield f"its verdict is {said}, and its figures give {due.kind}: {'; '.join(due.reasons) or 'no complaint'}"


def _too_large(suite: Suite, folder: Path) -> str | None:
    """Why its logs are not read: one that is a hole of terabytes costs its maker nothing, and its reader hours."""
    size = sum(path.lstat().st_size for path in suite.held_logs(folder))
    too_large = f"its logs are too large to be read again: {size >> 20} MiB, at most {LARGEST >> 20}"
    return too_large if size > LARGEST else None


def _made(suite: Suite, record: CaseRecord, folder: Path) -> CaseRecord | str:
    """The record of what lies in a folder, or why there is none."""
    try:
        made = suite.collect(folder, record)
    except UNREADABLE as error:
        return f"its figures cannot be computed again: {reason(error)}"
    return made or f"its figures cannot be computed again: suite {suite.name} has no way to"


def _filled(record: CaseRecord, made: CaseRecord) -> CaseRecord:
    """An older record, with fields that there were none of then as its logs give them: it is judged by those."""
    filled = dict[str, Any]()
    for name in type(record).model_fields:
        parts, its = getattr(record, name), getattr(made, name)
        if isinstance(parts, tuple) and isinstance(its, tuple) and len(parts) == len(its):
            pairs = zip(parts, its, strict=True)
            filled[name] = tuple(_part_filled(one, other) for one, other in pairs)
    whole: CaseRecord = _part_filled(record.model_copy(update=filled), made)
    return whole


def _part_filled(part: Any, its: Any) -> Any:
    if not isinstance(part, Part) or type(part) is not type(its):
        return part
    lacking = {name: getattr(its, name) for name in part.ADDED if getattr(part, name) is None}
    return part.model_copy(update=lacking) if lacking else part


def _differing(suite: Suite, record: CaseRecord, made: CaseRecord) -> Iterator[str]:
    later = {name: getattr(record, name) for name in (*LATER, "verdict")}
    if not made.figures or any(getattr(made, name) != value for name, value in later.items()):
        made = made.model_copy(update=later)
        made = made.with_figures(suite.figures(made))
    if record.text() == made.text():
        return
    found, more = list[str](), 0
    for what in _unlike(record, made):
        if len(found) < NAMED:
            found.append(what)
        else:
            more += 1
    origin = _made_otherwise(record) if found else ""
    yield from (f"{what}{origin}" for what in found)
    if more:
        yield f"and {more} more values are not what its logs say"


def _made_otherwise(record: CaseRecord) -> str:
    """The other Proofmark that made it, which may well have read logs otherwise; empty where none is known."""
    version = record.versions.get("proofmark")
    if version not in (None, __version__):
        return f" (it was made by Proofmark {version:.40}, this is {__version__})"
    made, here = record.provenance.commit.value if record.provenance else None, commit_of(SUITE)[0].value
    if made is None or here is None or made == here:
        return ""
    return f" (it was made in commit {made:.12}, this is {here:.12})"


def _unlike(said: CaseRecord, made: CaseRecord) -> Iterator[str]:
    """Every value in which two records differ. Of long tuples one part after another is laid out as plain values."""
    for name in type(said).model_fields:
        one, other = getattr(said, name), getattr(made, name)
        if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
            for number, (part, its) in enumerate(zip(one, other, strict=True)):
                yield from _differences(f"{name}[{number}]", to_jsonable_python(part), to_jsonable_python(its))
        else:
            yield from _differences(name, to_jsonable_python(one), to_jsonable_python(other))


def _differences(place: str, said: Any, made: Any) -> Iterator[str]:
    """Every difference between two plain values, with its place."""
    if isinstance(said, dict) and isinstance(made, dict):
        for key in [*said, *(key for key in made if key not in said)]:
            yield from _differences(f"{place}.{key}" if place else key, said.get(key), made.get(key))
    elif isinstance(said, list) and isinstance(made, list) and len(said) == len(made):
        for number, (one, other) in enumerate(zip(said, made, strict=True)):
            yield from _differences(f"{place}[{number}]", one, other)
    elif said != made or type(said) is not type(made):
        yield f"{place} is {_short(said)}, its logs say {_short(made)}"


def _short(value: Any) -> str:
    return f"{len(value)} of them" if isinstance(value, list) else literal(value)[:80]
