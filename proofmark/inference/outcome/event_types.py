"""What the events of an inference case must hold."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field

from proofmark.inference.outcome.record import Digest, StepStatus, Validated
from proofmark.record.events.types import (
    IDENTITY,
    Configuration,
    Count,
    Counted,
    EventReader,
    InStep,
    Measured,
    Moment,
    OnHost,
    Rate,
    RunBegin,
    Seconds,
    Text,
    Typed,
    configured,
    fits,
    part,
)
from proofmark.record.parts import Check, Contention, Memory
from proofmark.record.provenance import Launched
from proofmark.wall.isolation import Isolation


class _CaseBegin(RunBegin):
    config: Annotated[Configuration, configured("effective_precision")]
    compiler: Text | None
    device: Count | None
    gate: float
    framework_held: NotRequired[bool]


class _StepEnd(InStep):
    status: StepStatus
    seconds: Seconds | None
    reason: NotRequired[str | None]
    kind: NotRequired[Literal["unsupported", "error"] | None]
    detail: NotRequired[str | None]


class _Of(Typed):
    of: Text
    attempt: NotRequired[Count]


class _Isolated(_Of):
    isolation: Annotated[dict[str, Any], part(Isolation)]


class _Loader(_Of):
    items: Count
    seconds: Measured


class _Alone(_Of):
    items_per_second: Rate | None


class _Repeated(_Of):
    what: list[str]


class _Warmup(_Of):
    batches: Count
    seconds: Seconds


class _RoundHeard(_Of):
    number: Count


class _FooTime(_Of):
    reason: Text


class _Round(_Of):
    number: Count
    started: Moment
    items: Count
    filled: NotRequired[Count]
    passes: NotRequired[Count]
    contention: NotRequired[Annotated[dict[str, Any], part(Contention)] | None]
    whole_ns: Count
    spent_ns: NotRequired[Count]
    batch_ns: list[Count]
    evaluation_ns: Count
    foo_ns: NotRequired[Count]
    fresh: NotRequired[list[Count]]
    full: NotRequired[Count]
    seeds: NotRequired[list[Count]]
    accuracy: float | None
    weight: NotRequired[float]
    others: NotRequired[dict[Text, float | None]]


class _ShortRound(Typed):
    items: Count
    whole_ns: Count
    core_ns: Count


class _Launch(Typed):
    hosts: list[Annotated[OnHost, fits(Launched)]]
    device: Count | None
    caches_cleared: NotRequired[bool | None]
    begun: NotRequired[Annotated[float, Field(gt=-1e13, lt=1e13)]]  # by a clock that may show anything


class _Onnx(Typed):
    sha256: Digest


class _Caches(Typed):
    cleared: bool
    reason: Text | None


class _What(Typed):
    what: Text


class _Precision(Typed):
    precision: Text


CASE_EVENTS = EventReader(
    {
        "run_begin": _CaseBegin,
        "launched": _Launch,
        "caches": _Caches,
        "validated": Annotated[Typed, fits(Validated)],
        "onnx": _Onnx,
        "step_begin": InStep,
        "step_end": _StepEnd,
        "interrupted": InStep,
        "partial": Typed,
        "stopped": Typed,
        "dataset": IDENTITY,
        "weights": IDENTITY,
        "flops": Counted,
        "framework_precision": _Precision,
        "isolated": _Isolated,
        "foo_time": _FooTime,
        "loader": _Loader,
        "alone": _Alone,
        "warmup": _Warmup,
        "round_begin": _RoundHeard,
        "round_end": _RoundHeard,
        "round": _Round,
        "short_round": _ShortRound,
        "repeated": _Repeated,
        "probed": _Of,
        "memory": Annotated[_Of, fits(Memory)],
        "check": Annotated[Typed, fits(Check)],
        "dishonest": _What,
        "disturbed": _What,
        "monitor_failed": _What,
    }
)
"""Events of an inference case's log."""
