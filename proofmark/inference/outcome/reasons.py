"""Why a figure is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from proofmark.inference.outcome.record import RunRecord, Step

Side = Literal["framework", "engine"]
SIDES: tuple[Side, Side] = ("framework", "engine")

_STEPS: Mapping[Side, str] = {"framework": "framework_validation", "engine": "engine_inference"}


def why_not(record: RunRecord, side: Side) -> str:
    """Why a side was not measured. What made a step fail is the verdict's to tell, once."""
    if side == "engine" and record.compiler is None:
        return "no compiler: framework only"
    step = _step(record, side)
    if step is None:
        return f"the record has no step {_STEPS[side]}"
    if step.status == "skipped" and step.reason:
        return f"{step.name} skipped: {step.reason}"
    if step.status == "failed":
        return _how_it_failed(record, step)
    failed = next((step for step in record.steps if step.status == "failed"), None)
    if step.status == "not_reached" and failed:
        return f"{step.name} not reached: {_how_it_failed(record, failed)}"
    return f"{step.name} {step.status.replace('_', ' ')}"


def why_no_score(record: RunRecord, side: Side) -> str:
    """Why a side has no accuracy."""
    measured, step = record.framework if side == "framework" else record.engine, _step(record, side)
    if measured is None or step is None or step.status != "done":
        return why_not(record, side)
    scored = all(timed.accuracy is not None for timed in measured.rounds)
    if scored and side == "framework" and record.accuracy.framework_fp32 is not None:
        return f"vendor {record.vendor} runs the framework at fp32, not at {record.precision}"
    return "a round has no score"


def unless_ended(record: RunRecord, side: Side, reason: str) -> str:
    """`reason`, unless the run ended before a side was through."""
    step = _step(record, side)
    return reason if step is None or step.status == "done" else why_not(record, side)


def _step(record: RunRecord, side: Side) -> Step | None:
    return next((step for step in record.steps if step.name == _STEPS[side]), None)


def _how_it_failed(record: RunRecord, step: Step) -> str:
    if step.name == record.interrupted:
        return f"{step.name} was interrupted"
    return f"{step.name} {'is unsupported' if step.kind == 'unsupported' else 'failed'}"
