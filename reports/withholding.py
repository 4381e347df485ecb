"""Accuracy first: where a verdict withholds speed, no report shows one. What a speed is, is said here and nowhere else.

A time is as telling as a speed, and so is a moment: of a run that is withheld only its beginning is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from proofmark.inference.record import Measurement, Round, RunRecord, Step
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Monitoring, Part, Utilisation, Verdict
from proofmark.training.record import Confirmation, Evaluation, Rank, SeedRun, TrainingRecord

Shown = TypeVar("Shown", bound=Part)

SPEEDS: Mapping[type[Part], frozenset[str]] = {
    RunRecord: frozenset({"seconds"}),
    Step: frozenset({"seconds"}),
    Measurement: frozenset(Measurement.model_fields) - {"rounds", "warmup_batches", "latency_batches"},
    Round: frozenset(Round.model_fields) - {"items", "batches", "accuracy"},
    Utilisation: frozenset({"mfu"}),
    Monitoring: frozenset({"window", "energy_joules", "energy_per_item"}),
    TrainingRecord: frozenset(
        {"seconds", "seconds_to_target", "rates", "items_per_second_per_device", "tokens_per_second"}
    ),
    SeedRun: frozenset(
        {"e2e_seconds", "init_seconds", "train_seconds", "no_eval_seconds", "pure_compute_seconds", "rates", "split"}
        | {"train_began", "train_ended", "epochs", "notes"}
    ),
    Evaluation: frozenset({"seconds", "began", "ended"}),
    Confirmation: frozenset({"seconds"}),
    Rank: frozenset({"compute_seconds", "data_seconds", "communication"}),
}
"""Fields that are a speed or tell of one, by the part of a record that has them."""

MEASURED = ("framework_validation", "engine_inference")
"""Steps whose seconds are those of the measurement."""


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
    """A part of a training's record in which nobody knows a speed: null, or none of what there are several of."""
    update: dict[str, Any] = {}
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        if is_speed(part, name):
            update[name] = None if type(None) in get_args(field.annotation) else type(value)()
        elif isinstance(value, Part):
            update[name] = without_speeds(value)
        elif isinstance(value, tuple) and any(isinstance(each, Part) for each in value):
            update[name] = tuple(without_speeds(each) if isinstance(each, Part) else each for each in value)
    return part.model_copy(update=update)


def is_speed(part: Part, name: str) -> bool:
    """Whether a field of a part is a speed, or tells of one."""
    if isinstance(part, Step) and part.name not in MEASURED:
        return False
    return name in SPEEDS.get(type(part), ())


def _replace(part: Part, values: dict[str, Any], reason: str) -> None:
    """Put the reason in place of each speed in the part's plain values."""
    for name in type(part).model_fields:
        value = getattr(part, name)
        if is_speed(part, name):
            if value is not None:
                values[name] = reason
        elif isinstance(value, Part):
            _replace(value, values[name], reason)
        elif isinstance(value, tuple):
            for each, plain in zip(value, values[name], strict=True):
                if isinstance(each, Part):
                    _replace(each, plain, reason)
