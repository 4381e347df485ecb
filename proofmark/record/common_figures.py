"""Figures, and parts of them, that records of every suite have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from proofmark.record.envelope import CaseRecord
from proofmark.record.figures import Figure, FigureKind, valued
from proofmark.record.parts import Check, Monitoring

MFU = "model FLOPs utilisation: FLOPs of an item, times items per second, over the chip's peak."


def fact(key: str, label: str, unit: str, **more: Any) -> Figure:
    """What is neither a speed nor a cost: it may always be shown."""
    return Figure(key=key, label=label, unit=unit, kind=FigureKind.FACT, **more)


def quality(key: str, label: str, metric: str, **more: Any) -> Figure:
    """How good the answers are, in the metric's own unit."""
    return Figure(key=key, label=label, unit=metric or "1", kind=FigureKind.QUALITY, **more)


def cost(key: str, label: str, unit: str, **more: Any) -> Figure:
    """Time or energy: as telling as a speed."""
    return Figure(key=key, label=label, unit=unit, kind=FigureKind.COST, **more)


def utilisation(record: CaseRecord) -> Figure:
    """Model FLOPs utilisation, a share of the chip's dense peak."""
    found = record.utilisation
    known = valued(found.mfu, found.reason or record.chip.peak_missing)
    return Figure(key="mfu", label="MFU", unit="share", kind=FigureKind.SPEED, meaning=MFU, headline=True, **known)


def honesty(checks: Sequence[Check], reason: str) -> Figure:
    """How many checks passed, and the names of those that did not; `reason` where none was run."""
    failed = dict.fromkeys(check.name for check in checks if not check.passed)
    passed = sum(check.passed for check in checks)
    counted = f"{passed} of {len(checks)} checks passed"
    value = {"value": f"{counted}; failed: {', '.join(failed)}" if failed else counted}
    return fact("honesty", "honesty", "text", **(value if checks else {"reason": f"no check was run: {reason}"}))


def troubles(seen: Sequence[Monitoring | None]) -> Iterator[Figure]:
    """What monitors found wrong, with the devices or with themselves, each in a sentence."""
    sentences = dict.fromkeys(sentence for each in seen if each is not None for sentence in _troubles(each))
    for number, sentence in enumerate(sentences, 1):
        yield fact(f"monitor_{number}", "monitor", "text", value=sentence)


def _troubles(seen: Monitoring) -> Iterator[str]:
    if seen.throttled:
        yield f"the device was throttled in the timed window: {', '.join(seen.throttled)}"
    if seen.foreign_processes:
        processes = ", ".join(map(str, seen.foreign_processes))
        yield f"other processes were on the device in the timed window: {processes}"
    for failure in seen.failures:
        yield f"the monitor failed: {failure}"
    if not seen.samples:
        yield "the monitor took no sample"
